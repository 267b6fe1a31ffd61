import JobCore
import JobModel

/// One user of the daemon, with what they remember.
final class User {
    let profile: UserProfile
    var caller: Caller { Caller(uid: profile.uid, isAdmin: profile.isAdmin) }
    /// Jobs that were answered, the latest last.
    private(set) var jobs: [JobID] = []
    var subscriptions: [SubscriptionID] = []
    var waits: [RequestID] = []
    /// Acts left of the present bout.
    var actsLeft = 0
    /// How the present bout goes.
    var bout = Bout.mixed

    enum Bout {
        case mixed
        case flood
        case cancel
        case retry
        case remove
        case watch
        case wait
        case trees
    }

    private static let mostJobs = 300

    init(_ profile: UserProfile) { self.profile = profile }

    func remember(_ job: JobID) {
        jobs.append(job)
        if jobs.count > Self.mostJobs { jobs.removeFirst(Self.mostJobs / 2) }
    }

    func forget(_ job: JobID) { jobs.removeAll { $0 == job } }

    /// The daemon is gone, and with it what was open.
    func forget() {
        subscriptions = []
        waits = []
    }
}

/// Changes queues, and asks how things are.
struct Administrator {
    let caller = Caller(uid: 0, isAdmin: true)
    /// Queues that are suspended and will be resumed.
    var suspended: [String] = []
}
