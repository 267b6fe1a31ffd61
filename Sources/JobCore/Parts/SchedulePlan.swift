import JobModel

/// The times for which a schedule submits a job now, waits, or skips.
struct SchedulePlan: Equatable {
    /// The schedule to store, with or without a job.
    private(set) var row: Schedule
    /// The time to submit a job for.
    private(set) var time: Timestamp?
    /// The time of the previous job.
    private let lastTime: Timestamp?

    /// `floor` is the last time handled, `started` the start of this daemon, `isLastOpen` whether the previous job is
    /// unfinished, and `boot` the machine's present boot.
    init(
        _ row: Schedule, in zone: ZoneRules, after floor: Timestamp, isLastOpen: Bool, since started: Timestamp,
        boot: String, at now: Timestamp
    ) {
        self.row = row
        lastTime = row.lastTime
        var isBusy = isLastOpen
        if !row.waiting.isEmpty, !isBusy { submit(self.row.waiting.removeFirst(), &isBusy) }
        guard !row.isSuspended else { return }
        if let handled = row.timing.boot {
            self.row.timing = .reboot(boot)
            // Not a time that passed: the daemon may start long after the machine.
            if handled != boot { add(started, &isBusy, mayWait: false) }
            return
        }
        let due = row.timing.last(Schedule.mostWaiting, after: floor, upTo: now, since: row.setAt, in: zone)
        self.row.doneUntil = now
        // The daemon did not run, the machine slept, the wall clock was set, or the store was full.
        let missed = due.prefix { time in
            let patience = row.timing.patience(for: time, since: row.setAt, in: zone)
            return time <= started || now.seconds(since: time) > patience
        }
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
    }

    /// Handles a time that has come.
    private mutating func add(_ time: Timestamp, _ isBusy: inout Bool, mayWait: Bool) {
        if !isBusy, row.waiting.isEmpty { return submit(time, &isBusy) }
        if mayWait || row.overlap == .queue, row.waiting.count < Schedule.mostWaiting {
            row.waiting.append(time)
        } else {
            row.skipped += 1
        }
    }

    /// The schedule to store if the submission failed: the time is skipped.
    var withoutJob: Schedule {
        var row = row
        row.lastTime = lastTime
        row.submitted -= 1
        row.skipped += 1
        return row
    }
}
