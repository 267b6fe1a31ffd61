import DequeModule
import JobModel

/// The schedules: when each submits its next job, and which ones have something to do now.
///
/// In memory is what decides that, some hundred bytes for each; the specs are in the store.
struct Schedules {
    /// A schedule in memory.
    struct Entry {
        /// As it is stored.
        var row: Schedule
        /// Its next time; nil where it has none, or is suspended.
        var next: Timestamp?
        /// Whether its last job is not finished.
        var isLastOpen: Bool
    }

    private var entries: [ScheduleKey: Entry] = [:]
    private var counts: [UInt32: (schedules: Int, bytes: Int64)] = [:]
    /// The last jobs of schedules, as long as they are stored.
    private var jobs: [JobID: ScheduleKey] = [:]
    private var timers = TimerQueue()
    /// Schedules that have something to do, those of each owner in the order in which that came.
    private var ready: [UInt32: Deque<ScheduleKey>] = [:]
    /// Their owners, whose turn comes round one after the other: nobody's schedules wait for all of another's.
    private var turns: Deque<UInt32> = []
    private var isReady: Set<ScheduleKey> = []
    /// Schedules that are being changed, with what waits for that: each change builds on the one before.
    private var busy: [ScheduleKey: [() -> Void]] = [:]
    /// Schedules whose next time is to be found anew, as the wall clock was set.
    private var outdated: Deque<ScheduleKey> = []
    /// The rules of zones by name, as far as schedules needed them since the start.
    private(set) var zones: [String: ZoneRules] = ["UTC": .utc]

    subscript(key: ScheduleKey) -> Entry? { entries[key] }

    func count(of owner: UInt32) -> Int { counts[owner]?.schedules ?? 0 }
    /// Bytes that the schedules of one owner take up in the store.
    func bytes(of owner: UInt32) -> Int64 { counts[owner]?.bytes ?? 0 }

    /// When the first of them is due.
    var next: Int64? { timers.next }

    // MARK: - Changes

    /// Takes over what is stored of a schedule, and finds its next time.
    mutating func put(_ row: Schedule, isLastOpen: Bool, at now: Timestamp) {
        load(row, isLastOpen: isLastOpen)
        arm(row.key, at: now)
    }

    /// Takes over what is stored of a schedule; its next time is found by ``outdate()``.
    mutating func load(_ row: Schedule, isLastOpen: Bool) {
        count(entries[row.key]?.row, by: -1)
        count(row, by: 1)
        if let last = entries[row.key]?.row.lastJob, last != row.lastJob { jobs[last] = nil }
        if let job = row.lastJob { jobs[job] = row.key }
        entries[row.key] = Entry(row: row, next: nil, isLastOpen: isLastOpen)
    }

    mutating func remove(_ key: ScheduleKey) {
        guard let entry = entries.removeValue(forKey: key) else { return }
        count(entry.row, by: -1)
        if let job = entry.row.lastJob { jobs[job] = nil }
        timers.clear(.schedule(key))
    }

    private mutating func count(_ row: Schedule?, by sign: Int) {
        guard let row else { return }
        let old = counts[row.key.owner] ?? (0, 0)
        let new = (old.0 + sign, old.1.saturatingAdding(Int64(sign) * row.storedSize))
        counts[row.key.owner] = new.0 > 0 ? new : nil
    }

    mutating func use(_ rules: ZoneRules, of zone: String) { zones[zone] = rules }

    /// The zones that schedules go by.
    var zoneNames: [String] { Set(entries.values.compactMap(\.row.timing.zone)).sorted() }

    // MARK: - Times

    /// The rules that a schedule goes by; nil where those of its zone are not known.
    func zone(of row: Schedule) -> ZoneRules? {
        if let name = row.timing.zone { zones[name] } else { .utc }
    }

    /// Up to when a schedule's times are dealt with.
    func floor(of row: Schedule) -> Timestamp {
        [row.doneUntil, row.lastTime, row.waiting.last].compactMap(\.self).max() ?? row.doneUntil
    }

    /// Finds the next time of a schedule.
    private mutating func arm(_ key: ScheduleKey, at now: Timestamp) {
        guard var entry = entries[key] else { return }
        // Where the wall clock was set back times are due again, but for what was submitted or waits.
        entry.row.doneUntil = min(entry.row.doneUntil, now)
        entry.next = nil
        entries[key] = entry
        let row = entry.row
        timers.clear(.schedule(key))
        guard !row.isSuspended, let zone = zone(of: row) else { return }
        let next = row.timing.next(after: floor(of: row), since: row.setAt, in: zone)
        entries[key]?.next = next
        if let next { timers.set(.schedule(key), at: next.milliseconds) }
        if !row.waiting.isEmpty, !entry.isLastOpen { makeReady(key) }
    }

    /// The wall clock was set, or zones are known anew: every next time is to be found once more.
    mutating func outdate() { outdated = Deque(entries.keys.sorted()) }

    /// Finds the next times of some of those that ``outdate()`` concerned; false where none is left.
    mutating func armOutdated(_ limit: Int, at now: Timestamp) -> Bool {
        for _ in 0..<limit {
            guard let key = outdated.popFirst() else { return false }
            arm(key, at: now)
        }
        return !outdated.isEmpty
    }

    /// Moves schedules that are due to those that have something to do; false where no more are due.
    mutating func popDue(_ limit: Int, at now: Timestamp) -> Bool {
        for _ in 0..<limit {
            guard case .schedule(let key) = timers.popDue(at: now.milliseconds) else { return false }
            makeReady(key)
        }
        return (timers.next ?? .max) <= now.milliseconds
    }

    // MARK: - What has something to do

    mutating func makeReady(_ key: ScheduleKey) {
        guard isReady.insert(key).inserted else { return }
        if ready[key.owner] == nil { turns.append(key.owner) }
        ready[key.owner, default: []].append(key)
    }

    /// The next schedule that has something to do, of the first owner in turn whom `admits` lets in.
    mutating func popReady(where admits: (UInt32) -> Bool) -> ScheduleKey? {
        guard let index = turns.firstIndex(where: admits) else { return nil }
        let owner = turns.remove(at: index)
        guard let key = ready[owner]?.popFirst() else { return nil }
        if ready[owner]?.isEmpty == false { turns.append(owner) } else { ready[owner] = nil }
        isReady.remove(key)
        return key
    }

    func isBusy(_ key: ScheduleKey) -> Bool { busy[key] != nil }

    /// New schedules of an owner that are being stored.
    func beginning(of owner: UInt32) -> Int { busy.keys.count { $0.owner == owner && entries[$0] == nil } }

    /// A change of a schedule begins.
    mutating func begin(_ key: ScheduleKey) { busy[key] = [] }

    /// Has `body` run once the present change of a schedule is done.
    mutating func await(_ key: ScheduleKey, _ body: @escaping () -> Void) { busy[key]?.append(body) }

    /// A change of a schedule is done; gives what waited for it.
    mutating func end(_ key: ScheduleKey) -> [() -> Void] { busy.removeValue(forKey: key) ?? [] }

    // MARK: - Jobs

    /// The last job of a schedule is finished or gone.
    mutating func jobEnded(_ id: JobID, isGone: Bool = false) {
        guard let key = jobs[id] else { return }
        if isGone { jobs[id] = nil }
        entries[key]?.isLastOpen = false
        if entries[key]?.row.waiting.isEmpty == false { makeReady(key) }
    }

    /// A job that was finished runs again.
    mutating func jobReopened(_ id: JobID) {
        guard let key = jobs[id] else { return }
        entries[key]?.isLastOpen = true
    }
}
