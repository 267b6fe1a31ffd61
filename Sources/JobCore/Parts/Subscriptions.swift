import JobModel

/// The subscriptions and the jobs that they cover; not in rows, so a reset keeps them.
struct Subscriptions {
    private struct Subscription {
        let scope: WatchScope
        /// The owner of the jobs covered by a tag or by `all`; nil for all users.
        let owner: UInt32?
        let uid: UInt32
        /// Named jobs whose end was not reported yet.
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
    /// The number of subscriptions per progress interval, in milliseconds.
    private var byInterval: [Int: Int] = [:]
    /// The number of subscriptions per user.
    private(set) var byUser: [UInt32: Int] = [:]
    /// The number of subscriptions that cover descendants of their jobs, named by id or tag.
    private var withChildren = 0

    var isEmpty: Bool { subscriptions.isEmpty }
    var count: Int { subscriptions.count }
    /// Whether a job's ancestors decide which subscriptions cover it.
    var coverDescendants: Bool { withChildren > 0 }

    /// The intervals of progress reports, in milliseconds.
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

    /// Returns the subscriptions that name a job and have not reported its end.
    func naming(_ job: JobID) -> Set<SubscriptionID> {
        (byJob[job] ?? []).filter { subscriptions[$0]?.open.contains(job) == true }
    }

    /// The jobs that subscriptions name and whose end was not reported.
    var named: [JobID] { byJob.keys.filter { !naming($0).isEmpty } }

    /// Marks the end of a job as reported; subscriptions without further named jobs end.
    /// A subscription that covers children continues, because the children of a cancelled list end after it.
    mutating func ended(_ job: JobID, for ids: Set<SubscriptionID>) {
        for id in ids {
            subscriptions[id]?.open.remove(job)
            guard !includesChildren(id) else { continue }
            Self.drop(id, from: &byJob, job)
            if subscriptions[id]?.open.isEmpty == true { remove(id) }
        }
    }

    /// Returns the subscriptions that cover a job, in order, except `told`, which reported its end in this round.
    /// `ancestors` are the jobs above it, nearest first, if ``coverDescendants`` requires them.
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
