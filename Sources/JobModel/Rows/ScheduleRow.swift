/// A schedule as it is stored, with when it is looked at next.
package struct ScheduleRow: Sendable, Hashable {
    package var schedule: Schedule
    /// When it is to be looked at, by the time of day: its next time, or at once where a time waits for the job before it.
    /// Nil where it has none, is suspended, or waits for that job's end.
    package var next: Timestamp?
    /// Grows by one with each change.
    package var version: Int64 = 1

    package init(_ schedule: Schedule, next: Timestamp?) {
        self.schedule = schedule
        self.next = next
    }
}
