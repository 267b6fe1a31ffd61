import JobModel
import JobCore

/// One user of the daemon, with what they remember.
final class User {
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

    let profile: UserProfile
    var caller: Caller { Caller(uid: profile.uid, isAdmin: profile.isAdmin) }
    /// Jobs that were answered, the latest last.
    private(set) var jobs: [JobID] = []
    var subscriptions: [SubscriptionID] = []
    var waits: [RequestID] = []
    /// Acts left of the present bout.
    var actsLeft = 0
    var bout = Bout.mixed

    private static let mostJobs = 300

    init(_ profile: UserProfile) { self.profile = profile }

    func remember(_ job: JobID) {
        jobs.append(job)
        if jobs.count > Self.mostJobs { jobs.removeFirst(Self.mostJobs / 2) }
    }

    /// The daemon is gone, and with it what was open.
    func forget() {
        subscriptions = []
        waits = []
    }
}

/// Changes queues.
struct Administrator {
    let caller = Caller(uid: 0, isAdmin: true)
}
