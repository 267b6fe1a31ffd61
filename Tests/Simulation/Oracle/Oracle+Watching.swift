import JobCore
import JobModel

/// What a subscriber was told (invariant 7).
final class KnownSubscription {
    /// The last that was told of a job.
    struct Told {
        var state: JobState
        var link: Int
        var outcomes: Int
        var isOver: Bool
        var generation: Int
    }

    let scope: WatchScope
    let caller: Caller
    /// The answer was given, so whatever becomes durable from then on is told.
    var isOpen = false
    var told: [JobID: Told] = [:]
    /// Jobs whose end has to be told.
    var due: Set<JobID> = []
    var lastProgress: [JobID: Int64] = [:]

    init(_ scope: WatchScope, _ caller: Caller) {
        self.scope = scope
        self.caller = caller
    }

    func covers(_ job: KnownJob) -> Bool {
        switch scope.subject {
        case .jobs(let ids):
            if ids.contains(job.id) { return true }
            guard scope.includesChildren else { return false }
            var next = job.parent
            // With the end of what is named the watch is over for all below it.
            while let above = next {
                if ids.contains(above.id), told[above.id]?.isOver != true { return true }
                next = above.parent
            }
            return false
        case .tag(let tag):
            return isVisible(job) && job.root.row.spec.tags.contains(tag)
        case .all: return isVisible(job)
        }
    }

    private func isVisible(_ job: KnownJob) -> Bool {
        (caller.isAdmin || job.row.owner == caller.uid) && (job.parent == nil || scope.includesChildren)
    }

    func endIsDue(_ id: JobID) {
        if isOpen, told[id]?.isOver != true { due.insert(id) }
    }
}

extension Oracle {
    func unsubscribes(_ id: SubscriptionID) { subscriptions[id] = nil }

    func notifies(_ ids: [SubscriptionID], _ change: JobChange, _ world: World) {
        let shown = change.snapshot.job
        if Set(ids).count != ids.count { world.violate(7, "a subscriber is told of job \(change.job) twice at once") }
        guard let job = jobs[change.job] ?? removed[change.job] else {
            return world.violate(7, "subscribers are told of job \(change.job), which is not stored")
        }
        if change.isLast, !job.isOver || job.row.state != change.state {
            world.violate(7, "the end of job \(job.id) is told before it is stored")
        }
        if shown.outcomes.count > job.row.outcomes.count {
            world.violate(7, "outcomes of job \(job.id) are told before they are stored")
        }
        for id in ids {
            guard let subscription = subscriptions[id] else {
                return world.violate(7, "the subscription \(id) is told of job \(job.id), and is gone")
            }
            if !subscription.covers(job) {
                world.violate(7, "the subscription \(id) is told of job \(job.id), which it does not cover")
            }
            tell(subscription, change, shown, job, world)
        }
    }

    private func tell(
        _ subscription: KnownSubscription, _ change: JobChange, _ shown: Job, _ known: KnownJob, _ world: World
    ) {
        let job = change.job
        if let told = subscription.told[job] {
            if told.isOver {
                if case .jobs(let ids) = subscription.scope.subject, ids.contains(job) {
                    world.violate(7, "more is told of job \(job) after its end")
                } else if told.generation == known.generation {
                    let what = change.isLast ? "is told twice" : "is followed by more"
                    world.violate(7, "the end of job \(job) \(what)")
                }
            } else if told.generation == known.generation,
                shown.outcomes.count < told.outcomes || shown.outcomes.count == told.outcomes && shown.link < told.link
            {
                world.violate(7, "changes of job \(job) are told out of order")
            }
        }
        if change.isLast {
            checked.ends += 1
            subscription.due.remove(job)
            subscription.lastProgress[job] = nil
        }
        subscription.told[job] = .init(
            state: change.state, link: shown.link, outcomes: shown.outcomes.count, isOver: change.isLast,
            generation: known.generation)
        guard change.isLast, subscription.scope.includesChildren else { return }
        for id in subscription.due where jobs[id].map({ !subscription.covers($0) }) ?? true {
            subscription.due.remove(id)
        }
    }

    func reports(_ ids: [SubscriptionID], _ rows: [ProgressRow], at now: CoreTime, _ world: World) {
        if zip(rows, rows.dropFirst()).contains(where: { $0.job >= $1.job }) {
            world.violate(7, "rows of progress are not in the order of their jobs")
        }
        for id in ids {
            guard let subscription = subscriptions[id] else {
                return world.violate(7, "the subscription \(id) gets progress, and is gone")
            }
            let interval = Int64(max(0.001, min(3600, subscription.scope.interval)) * 1000) * 1_000_000
            for row in rows {
                // The core is yet to be told of what was removed.
                guard let job = jobs[row.job] ?? removed[row.job] else {
                    return world.violate(7, "progress is told of job \(row.job), which is not stored")
                }
                if !subscription.covers(job) {
                    world.violate(7, "the subscription \(id) gets progress of job \(job.id), which it does not cover")
                }
                if subscription.told[job.id]?.isOver == true {
                    world.violate(7, "progress is told of job \(job.id) after its end")
                }
                if let last = subscription.lastProgress[job.id], now.monotonic - last < interval {
                    world.violate(7, "progress of job \(job.id) is told more often than asked for")
                }
                subscription.lastProgress[job.id] = now.monotonic
            }
        }
    }
}
