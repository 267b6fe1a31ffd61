import JobModel
import JobProtocol

@testable import JobClient

/// A moment for tests: 2026-11-20T17:25:35.000Z.
let noon = Timestamp(milliseconds: 1_795_195_535_000)

/// A job as a daemon would show it, submitted ten seconds before ``noon``.
func job(_ id: Int64, _ state: String, _ members: JSON = [:]) -> JobSnapshot {
    var object: JSONObject = [
        "job": id.json, "state": state.json, "source": ["type": "url", "url": "https://example.org/a"],
        "queue": "default", "createdAt": noon.adding(seconds: -10).description.json, "link": 0, "links": 0,
        "outcomes": [],
    ]
    for member in members.object?.members ?? [] { object[member.name] = member.value }
    guard let snapshot = JobSnapshot(.object(object)) else { preconditionFailure("A test's job is no job.") }
    return snapshot
}

/// Progress as a daemon would tell it.
func progress(
    _ completed: Int, of total: Int? = nil, unit: String = "bytes", rate: Double? = nil, eta: Double? = nil
) -> JobProgress {
    let fraction = total.map { Double(completed) / Double($0) }
    let json: JSONObject = [
        "completed": completed.json, "total": total?.json, "unit": unit.json, "fraction": fraction?.json,
        "rate": rate?.json, "eta": eta?.json,
    ]
    guard let progress = JobProgress(.object(json)) else { preconditionFailure("A test's progress is no progress.") }
    return progress
}

extension JobEvent {
    /// The event that tells how `snapshot` stands.
    static func state(_ snapshot: JobSnapshot) -> JobEvent {
        JobEvent(watch: "w1", snapshot)
    }

    /// The event that tells how far a job is.
    static func progress(of job: Int64, _ progress: JobProgress, link: Int = 0, links: Int = 0) -> JobEvent {
        let params: JSONObject = [
            "watch": "w1", "job": job.json, "seq": 1, "link": link.json, "links": links.json, "progress": progress.json,
        ]
        guard let event = JobEvent(.progress, params, size: 0) else {
            preconditionFailure("A test's event is no event.")
        }
        return event
    }
}
