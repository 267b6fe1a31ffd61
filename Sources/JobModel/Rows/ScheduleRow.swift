/// A stored schedule and the time of its next check.
package struct ScheduleRow: Sendable, Hashable {
    package var schedule: Schedule
    /// The wall-clock time of the next check; nil if it has no next time, is suspended, or waits for a job's end.
    /// The check comes at the next time, or at once if a time waits for the preceding job.
    package var next: Timestamp?
    /// Grows by one with each change.
    package var version: Int64 = 1

    package init(_ schedule: Schedule, next: Timestamp?) {
        self.schedule = schedule
        self.next = next
    }
}
