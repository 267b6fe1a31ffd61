import JobModel

/// When the first row is due that waits for a time. The rows themselves are in the store.
struct Deadlines {
    /// Never later than the first row by this clock; nil where no row waits for it.
    private(set) var steady: SteadyTime?
    private(set) var wall: Timestamp?

    init() {}

    /// What the store says.
    init(_ times: DueTimes) {
        steady = times.steady
        wall = times.wall
    }

    /// A row was stored.
    mutating func note(_ row: JobRow) {
        if let due = row.due { steady = min(steady ?? due, due) }
        if let deadline = row.deadline { steady = min(steady ?? deadline, deadline) }
        if row.state == .scheduled, row.due == nil, let time = row.notBefore { wall = min(wall ?? time, time) }
    }

    /// A schedule was stored.
    mutating func note(_ row: ScheduleRow) {
        if let next = row.next { wall = min(wall ?? next, next) }
    }

    /// Whether a row may be due.
    func isDue(at now: CoreMoment) -> Bool {
        (steady.map { $0 <= now.steady } ?? false) || (wall.map { $0 <= now.wall } ?? false)
    }
}
