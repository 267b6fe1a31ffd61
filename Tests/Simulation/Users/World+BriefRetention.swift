import JobCore
import JobModel

/// Jobs that are purged a second after they end, while writes are slow and many fail: so one is purged whose end is durable but
/// was not told yet, as the core is storing it a second time.
extension World {
    /// Under one seed in twenty-three.
    static func hasBriefRetention(_ seed: UInt64) -> Bool { seed % 23 == 9 }

    func storeStutters() {
        guard !isSettling else { return }
        scheduleAnyway(.storeStutters, in: random.spread(60, 1_200))
        guard isRunning, oracle.isStarted, store.health == .well else { return }
        breakStore(.stutters, for: random.spread(5, 60))
        watch(tag: "brief", by: 0)
        let queue = JSON.string(random.pick(scenario.queues))
        submit(20, by: 0) { random in
            [
                "source": ["type": "url", "url": .string("http://x\(random.below(1000)).test/b")], "queue": queue,
                "tags": ["brief"],
            ]
        }
    }
}
