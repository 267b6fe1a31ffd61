import JobClient
import JobModel

/// Shows the progress of jobs to people. Its functions return what to write to the terminal or the log.
protocol ProgressDisplay: Sendable {
    /// Applies an event and returns what is to be written at once.
    mutating func render(_ event: JobEvent, now: Timestamp) -> String
    /// Redraws what is on the screen.
    mutating func draw(now: Timestamp, size: ScreenSize) -> String
    /// Clears what was drawn.
    mutating func clear() -> String
    /// Draws for the last time; this stays on the screen.
    mutating func end(now: Timestamp, size: ScreenSize) -> String
}

extension ProgressDisplay {
    mutating func end(now: Timestamp, size: ScreenSize) -> String { clear() }
}

/// Shows nothing.
struct NoDisplay: ProgressDisplay {
    func render(_ event: JobEvent, now: Timestamp) -> String { "" }

    func draw(now: Timestamp, size: ScreenSize) -> String { "" }

    func clear() -> String { "" }
}
