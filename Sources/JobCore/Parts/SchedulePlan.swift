import JobModel

/// What a schedule does at a time: for which of its times it submits a job now, and what becomes of the others.
struct SchedulePlan: Equatable {
    /// A time that is found so many seconds late, or more, passed as if no daemon had run: the machine slept, the wall
    /// clock was set, or nothing could be stored.
    static let lateness = 60.0

    /// The schedule as it is stored with the job, or without one.
    private(set) var row: Schedule
    /// The time that a job is submitted for.
    private(set) var time: Timestamp?
    /// Whether there is anything that has to be stored.
    private(set) var isChange = false
    /// The last time that a job was submitted for before.
    private let lastTime: Timestamp?

    /// `floor` is the last time that was dealt with, `started` when this daemon did, and `isLastOpen` says whether the job
    /// before is not finished.
    init(
        _ row: Schedule, in zone: ZoneRules, after floor: Timestamp, isLastOpen: Bool, since started: Timestamp,
        at now: Timestamp
    ) {
        self.row = row
        lastTime = row.lastTime
        var isBusy = isLastOpen
        if !row.waiting.isEmpty, !isBusy { submit(self.row.waiting.removeFirst(), &isBusy) }
        guard !row.isSuspended else { return }
        let due = row.timing.last(Schedule.mostWaiting, after: floor, upTo: now, since: row.setAt, in: zone)
        self.row.doneUntil = now
        let missed = due.prefix { $0 <= started || now.seconds(since: $0) > Self.lateness }
        switch row.catchUp {
        case .none: break
        case .last: if let last = missed.last { add(last, &isBusy, mayWait: false) }
        case .all: for time in missed { add(time, &isBusy, mayWait: true) }
        }
        for time in due[missed.endIndex...] { add(time, &isBusy, mayWait: false) }
    }

    private mutating func submit(_ time: Timestamp, _ isBusy: inout Bool) {
        self.time = time
        row.lastTime = time
        row.submitted += 1
        isBusy = true
        isChange = true
    }

    /// Deals with a time that has come.
    private mutating func add(_ time: Timestamp, _ isBusy: inout Bool, mayWait: Bool) {
        isChange = true
        if !isBusy, row.waiting.isEmpty { return submit(time, &isBusy) }
        if mayWait || row.overlap == .queue, row.waiting.count < Schedule.mostWaiting {
            row.waiting.append(time)
        } else {
            row.skipped += 1
        }
    }

    /// The same where the job could not be submitted: its time is passed over.
    var withoutJob: Schedule {
        var row = row
        row.lastTime = lastTime
        row.submitted -= 1
        row.skipped += 1
        return row
    }
}
