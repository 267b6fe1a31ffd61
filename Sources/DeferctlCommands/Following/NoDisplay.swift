import JobClient
import JobModel

/// Shows nothing.
struct NoDisplay: ProgressDisplay {
    func render(_ event: JobEvent, now: Timestamp) -> String { "" }

    func draw(now: Timestamp, size: ScreenSize) -> String { "" }

    func clear() -> String { "" }
}
