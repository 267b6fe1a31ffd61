import JobClient
import JobModel

/// Shows nothing.
struct NoDisplay: ProgressDisplay {
    func take(_ event: JobEvent, now: Timestamp) -> String { "" }

    func draw(now: Timestamp, size: ScreenSize) -> String { "" }

    func clear() -> String { "" }
}
