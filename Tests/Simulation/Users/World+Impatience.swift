import JobCore
import JobModel

/// One user who retries or removes a list as soon as it failed, while `finally` links of its children are still at work.
extension World {
    /// Under one seed in eleven.
    static func hasImpatience(_ seed: UInt64) -> Bool { seed % 11 == 9 }

    func impatience() {
        guard !isSettling else { return }
        scheduleAnyway(.impatience, in: random.spread(100, 2_000))
        guard isRunning, oracle.isStarted else { return }
        let queue = JSON.string(random.pick(scenario.queues))
        let caller = users[0].caller
        let jobs = (0..<random.within(2...8)).compactMap { _ in
            oracle.admitted(Self.listThatFails(&random, queue), caller, self)
        }
        ask(.submit(jobs), by: caller, user: 0)
        for _ in 0..<10 { scheduleAnyway(.impatientActs, in: random.spread(0.02, 40)) }
    }

    /// Retries, removes or cancels one of the lists that were submitted last.
    func impatientActs() {
        guard !isSettling, isRunning, oracle.isStarted else { return }
        let user = users[0]
        guard let job = random.element(of: Array(user.jobs.suffix(8))) else { return }
        switch random.choose([40, 20, 25, 15]) {
        case 0: act(on: job, user, 0) { .retry($0, from: .failed) }
        case 1: act(on: job, user, 0) { .retry($0, from: .start) }
        case 2: act(on: job, user, 0) { .remove($0) }
        default: act(on: job, user, 0) { .cancel($0) }
        }
    }

    /// The daemon is killed now and then when sources of what was removed are still at work, which it hears of next.
    func mayCrash(after removed: [RemovedJob]) {
        guard Self.hasImpatience(seed), effectsUntilCrash != nil else { return }
        let ids = Set(removed.map(\.id))
        guard sources.all.contains(where: { sources.job(of: $0).map(ids.contains) ?? false }) else { return }
        if random.chance(0.1) { effectsUntilCrash = random.within(0...3) }
    }

    /// A list that soon takes too long, so that its children are cancelled and run their `finally` links, for which it does
    /// not wait.
    private static func listThatFails(_ random: inout SeededGenerator, _ queue: JSON) -> JSON {
        func source(_ letter: String, _ random: inout SeededGenerator) -> JSON {
            ["type": "url", "url": .string("http://x\(random.below(1000)).test/\(letter)")]
        }
        let children: [JSON] = (0..<random.within(1...4)).map { _ in
            [
                "source": source("l", &random), "queue": queue,
                "then": [["finally": ["source": source(random.pick(["f", "m", "s"]), &random)]]],
            ]
        }
        return [
            "source": ["type": "list", "jobs": .array(children)], "timeout": JSON(random.spread(0.1, 10)),
        ]
    }
}
