/// How one link of a job ended, as it is kept in the job.
package struct LinkOutcome: Sendable, Hashable {
    package var link: Int
    /// Nil for a success.
    package var error: JobError?
    package var startedAt: Timestamp
    package var finishedAt: Timestamp
    package var attempts: Int
    /// About what it takes up on disk, in bytes.
    package let size: Int64

    package init(link: Int, error: JobError?, startedAt: Timestamp, finishedAt: Timestamp, attempts: Int) {
        self.link = link
        self.error = error
        self.startedAt = startedAt
        self.finishedAt = finishedAt
        self.attempts = attempts
        size = 128 + Int64(error?.json.size ?? 0)
    }

    package var json: JSON {
        var object = JSONObject()
        object.append("link", JSON(link))
        object.append("ok", .bool(error == nil))
        object.append("error", ifPresent: error?.json)
        object.append("startedAt", .string(startedAt.description))
        object.append("finishedAt", .string(finishedAt.description))
        object.append("attempts", JSON(attempts))
        return .object(object)
    }

    /// The outcome that `json` writes down, or nil where it is none.
    package init?(json: JSON) {
        guard let link = json["link"]?.int, let started = json["startedAt"]?.string.flatMap(Timestamp.init(rfc3339:)),
            let finished = json["finishedAt"]?.string.flatMap(Timestamp.init(rfc3339:))
        else { return nil }
        self.init(
            link: link, error: json["error"].map(JobError.init(json:)), startedAt: started, finishedAt: finished,
            attempts: json["attempts"]?.int ?? 1)
    }
}
