import JobModel

/// What bounds how many jobs run at once, beside their queue. Computed here and nowhere else.
enum ConcurrencyKey: Hashable {
    case none
    /// A job without a parent that makes child jobs: so many lists are open at once.
    case lists
    /// A job that asks this host (name and port).
    case host(String)

    /// The key of what `job` runs next, as far as that is known before it runs.
    init(_ job: Job) {
        if job.step?.type?.hasChildren == true {
            self = job.parent == nil ? .lists : .none
        } else {
            self.init(host: job.host)
        }
    }

    init(host: String?) {
        // Jobs that an earlier version stored keep a name of its own in the place of a list's host.
        if let host, !host.isEmpty { self = host == " lists" ? .lists : .host(host) } else { self = .none }
    }
}
