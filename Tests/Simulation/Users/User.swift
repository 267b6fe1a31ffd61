import JobModel
import JobCore

/// A user of the daemon, with the jobs, subscriptions and waits that they remember.
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
        case minds
    }

    let profile: UserProfile
    var caller: Caller { Caller(uid: profile.uid, isAdmin: profile.isAdmin) }
    /// Submitted jobs, latest last.
    private(set) var jobs: [JobID] = []
    var subscriptions: [SubscriptionID] = []
    var waits: [RequestID] = []
    /// Remaining acts of the current bout.
    var actsLeft = 0
    var bout = Bout.mixed

    private static let mostJobs = 300

    init(_ profile: UserProfile) { self.profile = profile }

    func remember(_ job: JobID) {
        jobs.append(job)
        if jobs.count > Self.mostJobs { jobs.removeFirst(Self.mostJobs / 2) }
    }

    /// Forgets what ended with the daemon.
    func forget() {
        subscriptions = []
        waits = []
    }
}

/// An administrator who changes queues.
struct Administrator {
    let caller = Caller(uid: 0, isAdmin: true)
}
