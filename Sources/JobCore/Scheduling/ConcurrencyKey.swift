import JobModel

/// What bounds, beside the queue, how many jobs run at once. Computed here and nowhere else.
enum ConcurrencyKey: Hashable {
    case none
    /// A job without a parent that makes child jobs: so many lists are open at once.
    case lists
    /// A child that makes child jobs, so many lists above it: those that are open at once take so much memory. Each depth has a
    /// limit of its own, as a list ends only when those below it have.
    case nestedLists(depth: Int)
    /// A job that waits for a time: so many wait at once.
    case timers
    /// A job that sends requests to this host (name and port).
    case host(String)
    /// A job that retries a request to this host: it has waited as its own retry policy says, so it does not also wait
    /// until the host is open to other jobs again.
    case hostAgain(String)

    /// The key under which it is counted.
    var counted: ConcurrencyKey { if case .hostAgain(let host) = self { .host(host) } else { self } }

    /// Whether a job is counted under it also while it waits.
    var isKeptWaiting: Bool {
        switch self {
        case .lists, .nestedLists, .timers: true
        case .none, .host, .hostAgain: false
        }
    }

    /// Whether it bounds lists that are open, by what they take in memory.
    var isList: Bool {
        switch self {
        case .lists, .nestedLists: true
        case .none, .timers, .host, .hostAgain: false
        }
    }

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
        // A child waits under it only once it has begun, so no row of a queued job names it.
        case .none, .nestedLists: nil
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
