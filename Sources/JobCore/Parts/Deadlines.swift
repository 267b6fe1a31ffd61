import JobModel

/// The times at which the first stored rows become due.
struct Deadlines {
    /// Never later than the first due time by this clock; nil if there is none.
    private(set) var steady: SteadyTime?
    private(set) var wall: Timestamp?

    mutating func note(_ row: JobRow) {
        if let due = row.due { steady = min(steady ?? due, due) }
        if let deadline = row.deadline { steady = min(steady ?? deadline, deadline) }
        if row.state == .scheduled, row.due == nil, let time = row.notBefore { wall = min(wall ?? time, time) }
    }

    mutating func note(_ row: ScheduleRow) {
        if let next = row.next { wall = min(wall ?? next, next) }
    }

    /// Returns whether a row may be due.
    func isDue(at now: CoreMoment) -> Bool {
        (steady.map { $0 <= now.steady } ?? false) || (wall.map { $0 <= now.wall } ?? false)
    }
}
