import JobClient
import JobModel

/// Shows people how jobs come on. Its functions return what to write to the terminal or the log.
protocol ProgressDisplay: Sendable {
    /// Takes an event into account and returns what is to be written at once.
    mutating func render(_ event: JobEvent, now: Timestamp) -> String
    /// Draws anew what stands on the screen.
    mutating func draw(now: Timestamp, size: ScreenSize) -> String
    /// Removes from the screen what stands there.
    mutating func clear() -> String
    /// Draws for the last time: what is to stay.
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
