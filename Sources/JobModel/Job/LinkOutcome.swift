/// The outcome of one link, as stored with the job.
package struct LinkOutcome: Sendable, Hashable {
    package var link: Int
    /// Nil for a success.
    package var error: JobError?
    package var startedAt: Timestamp
    package var finishedAt: Timestamp
    package var attempts: Int
    /// The URL that it asked for last, if expressions made it.
    package var url: String?
    /// The approximate size on disk, in bytes.
    package let size: Int64

    package init(
        link: Int, error: JobError?, startedAt: Timestamp, finishedAt: Timestamp, attempts: Int, url: String? = nil
    ) {
        self.link = link
        self.error = error
        self.startedAt = startedAt
        self.finishedAt = finishedAt
        self.attempts = attempts
        self.url = url
        size = 128 + Int64(error?.json.size ?? 0) + Int64(url?.utf8.count ?? 0)
    }

    package var json: JSON {
        .object([
            "link": link.json, "ok": (error == nil).json, "error": error?.json, "url": url?.json,
            "startedAt": startedAt.json,
            "finishedAt": finishedAt.json, "attempts": attempts.json,
        ])
    }
}
