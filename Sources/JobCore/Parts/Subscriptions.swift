import JobModel

/// The subscriptions and the jobs that they cover; not in rows, so a reset keeps them.
package struct Subscriptions {
    /// The key of a subscription in the index; the owner of tagged or all jobs is nil for all users.
    private enum Topic: Hashable {
        case job(JobID)
        case tag(String, UInt32?)
        case all(UInt32?)
    }

    private struct Subscription {
        let scope: WatchScope
        let caller: Caller
        /// Named jobs whose end was not reported yet.
        var open: Set<JobID> = []

        var topics: [Topic] {
            switch scope.subject {
            case .jobs(let jobs): jobs.map(Topic.job)
            case .tag(let tag): [.tag(tag, caller.owner)]
            case .all: [.all(caller.owner)]
            }
        }
    }

    private var subscriptions: [SubscriptionID: Subscription] = [:]
    private var byTopic: [Topic: Set<SubscriptionID>] = [:]
    /// The number of subscriptions per progress interval, in milliseconds.
    private var byInterval: [Int: Int] = [:]
    /// The number of subscriptions per user.
    private(set) var byUser: [UInt32: Int] = [:]
    /// The number of subscriptions that cover descendants of their jobs.
    private var withChildren = 0

    var isEmpty: Bool { subscriptions.isEmpty }
    package var count: Int { subscriptions.count }
    /// Whether a job's ancestors decide which subscriptions cover it.
    var coverDescendants: Bool { withChildren > 0 }

    /// The intervals of progress reports, in milliseconds.
    var intervals: some Collection<Int> { byInterval.keys }
    func interval(of id: SubscriptionID) -> Int? { subscriptions[id]?.scope.milliseconds }

    mutating func add(_ id: SubscriptionID, _ scope: WatchScope, _ caller: Caller) {
        var subscription = Subscription(scope: scope, caller: caller)
        if case .jobs(let jobs) = scope.subject { subscription.open = Set(jobs) }
        for topic in subscription.topics { byTopic[topic, default: []].insert(id) }
        if scope.includesChildren { withChildren += 1 }
        byInterval[scope.milliseconds, default: 0] += 1
        byUser[caller.uid, default: 0] += 1
        subscriptions[id] = subscription
    }

    package mutating func remove(_ id: SubscriptionID) {
        guard let subscription = subscriptions.removeValue(forKey: id) else { return }
        if subscription.scope.includesChildren { withChildren -= 1 }
        let interval = subscription.scope.milliseconds
        byInterval[interval] = byInterval[interval].flatMap { $0 > 1 ? $0 - 1 : nil }
        byUser[subscription.caller.uid] = byUser[subscription.caller.uid].flatMap { $0 > 1 ? $0 - 1 : nil }
        for topic in subscription.topics { drop(id, from: topic) }
    }

    private mutating func drop(_ id: SubscriptionID, from topic: Topic) {
        byTopic[topic]?.remove(id)
        if byTopic[topic]?.isEmpty == true { byTopic[topic] = nil }
    }

    /// Returns the subscriptions that name a job and have not reported its end.
    func naming(_ job: JobID) -> Set<SubscriptionID> {
        (byTopic[.job(job)] ?? []).filter { subscriptions[$0]?.open.contains(job) == true }
    }

    /// The jobs that subscriptions name and whose end was not reported.
    var named: Set<JobID> { subscriptions.values.reduce(into: []) { $0.formUnion($1.open) } }

    /// The subscriptions that cover jobs that they do not name.
    var coveringOthers: [SubscriptionID] {
        subscriptions.filter { _, subscription in
            if case .jobs = subscription.scope.subject { subscription.scope.includesChildren } else { true }
        }.keys.sorted()
    }

    /// Marks the end of a job as reported; subscriptions without further named jobs end.
    /// A subscription that covers children continues, because the children of a cancelled list end after it.
    mutating func ended(_ job: JobID, for ids: Set<SubscriptionID>) {
        for id in ids {
            subscriptions[id]?.open.remove(job)
            guard !includesChildren(id) else { continue }
            drop(id, from: .job(job))
            if subscriptions[id]?.open.isEmpty == true { remove(id) }
        }
    }

    /// Returns the subscriptions that cover a job, in order, except `told`, which reported its end in this round.
    /// `ancestors` are the jobs above it, nearest first, if ``coverDescendants`` requires them.
    func covering(_ job: JobRow, below ancestors: [JobRow], told: Set<SubscriptionID>) -> [SubscriptionID] {
        if subscriptions.isEmpty { return [] }
        var found = naming(job.id).subtracting(told)
        for ancestor in ancestors {
            for id in byTopic[.job(ancestor.id)] ?? [] where includesChildren(id) { found.insert(id) }
        }
        for owner in [nil, job.owner] {
            for tag in ancestors.last?.tags ?? job.tags {
                add(byTopic[.tag(tag, owner)], covering: job, to: &found)
            }
            add(byTopic[.all(owner)], covering: job, to: &found)
        }
        return found.sorted()
    }

    private func add(_ candidates: Set<SubscriptionID>?, covering job: JobRow, to found: inout Set<SubscriptionID>) {
        for id in candidates ?? [] where job.parent == nil || includesChildren(id) { found.insert(id) }
    }

    private func includesChildren(_ id: SubscriptionID) -> Bool { subscriptions[id]?.scope.includesChildren == true }
}
