import JobCore
import JobModel

/// Jobs that are purged a second after their end while each write takes long and many fail: what is stored, and was not told of
/// as it is stored once more, goes before that has an answer.
extension World {
    /// Under one seed in twenty-three.
    static func hasBriefRetention(_ seed: UInt64) -> Bool { seed % 23 == 9 }

    func storeStutters() {
        guard !isSettling else { return }
        scheduleAnyway(.storeStutters, in: random.spread(60, 1_200))
        guard isRunning, oracle.isStarted, store.health == .well else { return }
        store.health = .stutters
        store.lastUnwell = clock.elapsed
        trace.add(.storeFault, at: clock.elapsed)
        scheduleAnyway(.storeHeals, in: random.spread(5, 60))
        let user = users[0]
        if user.subscriptions.count > 6 { endWatch(user) }
        lastSubscription += 1
        user.subscriptions.append(lastSubscription)
        ask(
            .watch(WatchScope(.tag("brief"), interval: 2, includesChildren: true), lastSubscription), by: user.caller,
            user: 0)
        let queue = JSON.string(random.pick(scenario.queues))
        submit(20, by: 0) { random in
            [
                "source": ["type": "url", "url": .string("http://x\(random.below(1000)).test/b")], "queue": queue,
                "tags": ["brief"],
            ]
        }
    }
}
