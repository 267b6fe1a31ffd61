import JobModel

extension Timestamp {
    /// A time `seconds` after one that all tests share.
    static func after(_ seconds: Double) -> Timestamp {
        Timestamp(milliseconds: 1_790_000_000_000).adding(seconds: seconds)
    }
}

extension Job {
    /// The whole job object.
    func json(progress: Progress? = nil) -> JSON { JobView(self, progress: progress).json() }

    /// A job with these links that begins with a source of the type `value`.
    static func chain(_ links: String = "", _ members: String = "", _ state: JobState = .queued) throws -> Job {
        Job(id: 7, spec: try .chain(links, members), owner: 1000, state: state, createdAt: .after(0))
    }
}
