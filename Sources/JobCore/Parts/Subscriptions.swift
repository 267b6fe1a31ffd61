import JobModel

/// Which subscriptions cover a job. They were learned outside: a reset leaves them alone.
struct Subscriptions {
    private struct Subscription {
        let scope: WatchScope
        /// Whose jobs it covers by a tag or all of them; nil for those of all users.
        let owner: UInt32?
        let uid: UInt32
        /// Jobs that it names and whose end it has not told.
        var open: Set<JobID>
    }

    private struct Tag: Hashable {
        let owner: UInt32?
        let text: String
    }

    private var subscriptions: [SubscriptionID: Subscription] = [:]
    private var byJob: [JobID: Set<SubscriptionID>] = [:]
    private var byTag: [Tag: Set<SubscriptionID>] = [:]
    private var ofAll: [UInt32?: Set<SubscriptionID>] = [:]
    /// How many report progress at each interval, in milliseconds.
    private var byInterval: [Int: Int] = [:]
    /// How many each user has.
    private(set) var byUser: [UInt32: Int] = [:]
    /// How many cover what is below the jobs that they name, by id or tag.
    private var withChildren = 0

    var isEmpty: Bool { subscriptions.isEmpty }
    var count: Int { subscriptions.count }
    /// Whether a job's ancestors decide which subscriptions cover it.
    var coverDescendants: Bool { withChildren > 0 }

    /// The intervals at which subscriptions report progress, in milliseconds.
    var intervals: some Collection<Int> { byInterval.keys }
    func interval(of id: SubscriptionID) -> Int? { subscriptions[id]?.scope.milliseconds }

    mutating func add(_ id: SubscriptionID, _ scope: WatchScope, _ caller: Caller) {
        var subscription = Subscription(scope: scope, owner: caller.owner, uid: caller.uid, open: [])
        switch scope.subject {
        case .jobs(let jobs):
            subscription.open = Set(jobs)
            for job in subscription.open { byJob[job, default: []].insert(id) }
        case .tag(let tag): byTag[Tag(owner: caller.owner, text: tag), default: []].insert(id)
        case .all: ofAll[caller.owner, default: []].insert(id)
        }
        if scope.includesChildren { withChildren += 1 }
        byInterval[scope.milliseconds, default: 0] += 1
        byUser[caller.uid, default: 0] += 1
        subscriptions[id] = subscription
    }

    mutating func remove(_ id: SubscriptionID) {
        guard let subscription = subscriptions.removeValue(forKey: id) else { return }
        if subscription.scope.includesChildren { withChildren -= 1 }
        let interval = subscription.scope.milliseconds
        byInterval[interval] = byInterval[interval].flatMap { $0 > 1 ? $0 - 1 : nil }
        byUser[subscription.uid] = byUser[subscription.uid].flatMap { $0 > 1 ? $0 - 1 : nil }
        switch subscription.scope.subject {
        case .jobs(let jobs): for job in Set(jobs) { Self.drop(id, from: &byJob, job) }
        case .tag(let tag): Self.drop(id, from: &byTag, Tag(owner: subscription.owner, text: tag))
        case .all: Self.drop(id, from: &ofAll, subscription.owner)
        }
    }

    private static func drop<Key: Hashable>(
        _ id: SubscriptionID, from index: inout [Key: Set<SubscriptionID>], _ key: Key
    ) {
        index[key]?.remove(id)
        if index[key]?.isEmpty == true { index[key] = nil }
    }

    /// The subscriptions that name a job and have not told its end.
    func naming(_ job: JobID) -> Set<SubscriptionID> {
        (byJob[job] ?? []).filter { subscriptions[$0]?.open.contains(job) == true }
    }

    /// These subscriptions have told the end of a job: they tell nothing more of it, and end where they name no other job. One
    /// that covers children goes on, as what is below a cancelled list ends after it.
    mutating func ended(_ job: JobID, for ids: Set<SubscriptionID>) {
        for id in ids {
            subscriptions[id]?.open.remove(job)
            guard !includesChildren(id) else { continue }
            Self.drop(id, from: &byJob, job)
            if subscriptions[id]?.open.isEmpty == true { remove(id) }
        }
    }

    /// The subscriptions that cover a job, in order; `ancestors` are the jobs above it, from the nearest, where
    /// ``coverDescendants`` asks for them. The subscriptions `told` have told its end in this round.
    func covering(_ job: JobRow, below ancestors: [JobRow], told: Set<SubscriptionID>) -> [SubscriptionID] {
        if subscriptions.isEmpty { return [] }
        var found = naming(job.id).subtracting(told)
        for ancestor in ancestors {
            for id in byJob[ancestor.id] ?? [] where includesChildren(id) { found.insert(id) }
        }
        for owner in [nil, job.owner] {
            for tag in ancestors.last?.tags ?? job.tags {
                add(byTag[Tag(owner: owner, text: tag)], covering: job, to: &found)
            }
            add(ofAll[owner], covering: job, to: &found)
        }
        return found.sorted()
    }

    private func add(_ candidates: Set<SubscriptionID>?, covering job: JobRow, to found: inout Set<SubscriptionID>) {
        for id in candidates ?? [] where job.parent == nil || includesChildren(id) { found.insert(id) }
    }

    private func includesChildren(_ id: SubscriptionID) -> Bool { subscriptions[id]?.scope.includesChildren == true }
}
