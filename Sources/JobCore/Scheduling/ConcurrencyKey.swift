import JobModel

/// What bounds how many jobs run at once, beside their queue. Computed here and nowhere else.
enum ConcurrencyKey: Hashable {
    case none
    /// A job without a parent that makes child jobs: so many lists are open at once.
    case lists
    /// A job that waits for a time: so many are in memory.
    case timers
    /// A job that asks this host (name and port).
    case host(String)
    /// A job that asks this host again after an answer of it: it waited as long as its own policy says, so it does not
    /// wait for the host to be asked by others again.
    case hostAgain(String)

    /// The key under which it is counted.
    var counted: ConcurrencyKey { if case .hostAgain(let host) = self { .host(host) } else { self } }

    /// The key of what `job` runs next, as far as that is known before it runs.
    init(_ job: Job) {
        self =
            ConcurrencyKey(hostlessStepOf: job) ?? ConcurrencyKey(host: job.host, isAgain: job.lastFailure?.http != nil)
    }

    /// The key of what `job` runs next, where that is a list or a timer, whatever it fills in; nil for all else.
    init?(hostlessStepOf job: Job) {
        // Most jobs that become ready are at their source, which is found without a copy of a step.
        let type = job.link == 0 ? job.spec.source.type : job.step?.type
        if type?.hasChildren == true {
            self = job.parent == nil ? .lists : .none
        } else if type == .timer {
            self = .timers
        } else {
            return nil
        }
    }

    private static let listsName = " lists"
    private static let timersName = " timers"

    /// The name that is stored with a job as the host that it asks, so that a large job need not be read to know what it
    /// waits for. No name of a host has a space.
    var name: String? {
        switch self {
        case .none: nil
        case .lists: Self.listsName
        case .timers: Self.timersName
        case .host(let host), .hostAgain(let host): host
        }
    }

    /// The key of a stored name.
    init(host: String?, isAgain: Bool = false) {
        switch host {
        case nil, "": self = .none
        case Self.listsName: self = .lists
        case Self.timersName: self = .timers
        case let host?: self = isAgain ? .hostAgain(host) : .host(host)
        }
    }
}
