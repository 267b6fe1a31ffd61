import JobCore
import JobModel

/// Trees that are cancelled while the store takes seconds to read: what is above a job, or the children that have to be
/// stopped, is known only when the next has happened, in the order in which chance answers, or never where a crash comes.
extension World {
    /// Under one seed in thirteen.
    static func hasSlowReads(_ seed: UInt64) -> Bool { seed % 13 == 11 }

    /// The jobs of a bout.
    private static let trees = 4

    func treesToCancel() {
        guard !isSettling else { return }
        scheduleAnyway(.treesToCancel, in: random.spread(100, 1_500))
        guard isRunning, oracle.isStarted else { return }
        watch(tag: "slow", by: 0)
        let queue = JSON.string(random.pick(scenario.queues))
        // Those of the first kind would take the slots of the others.
        let cleansUp = random.chance(0.5)
        submit(Self.trees, by: 0) { random in
            cleansUp ? Self.treeThatCleansUp(&random, queue) : Self.listThatWaits(&random, queue)
        }
        scheduleAnyway(.readsSlowDown, in: random.spread(0.5, 10))
    }

    /// Cancels what was submitted last. Now and then the daemon is killed soon after.
    func readsSlowDown() {
        guard !isSettling, isRunning, oracle.isStarted, store.health == .well else { return }
        breakStore(.readsAreSlow, for: random.spread(2, 60))
        let life = life
        for job in users[0].jobs.suffix(Self.trees) where self.life == life {
            act(on: job, users[0], 0) { .cancel($0) }
        }
        if effectsUntilCrash != nil, random.chance(0.5) { effectsUntilCrash = random.within(1...30) }
        if random.chance(0.7) { scheduleAnyway(.treesToRemove, in: random.spread(0.2, 2)) }
    }

    /// Removes them while reads are slow, over and over, as only what is over can be removed: some whose jobs have just ended
    /// go before what is above these was read.
    func treesToRemove() {
        guard !isSettling, isRunning, oracle.isStarted, store.health == .readsAreSlow else { return }
        scheduleAnyway(.treesToRemove, in: random.spread(0.2, 2))
        let life = life
        for job in users[0].jobs.suffix(Self.trees) where self.life == life {
            act(on: job, users[0], 0) { .remove($0) }
        }
    }

    private static func source(_ letter: String, _ random: inout SeededGenerator) -> JSON {
        ["type": "url", "url": .string("http://x\(random.below(1000)).test/\(letter)")]
    }

    /// Its child makes children of its own when it is stopped, which go through several links below a job that is over. They
    /// are watched by its tag.
    private static func treeThatCleansUp(_ random: inout SeededGenerator, _ queue: JSON) -> JSON {
        let children: [JSON] = (0..<random.within(2...5)).map { _ in
            [
                "source": source("f", &random), "queue": queue,
                "then": [["both": ["source": source("f", &random)]], ["both": ["return": 1]]],
            ]
        }
        let child: JSON = [
            "source": source("l", &random), "queue": queue,
            "then": [["finally": ["source": ["type": "list", "jobs": .array(children)]]]],
        ]
        return ["source": ["type": "list", "jobs": [child]], "tags": ["slow"]]
    }

    /// Its children take too long at once and wait for their retries when it is stopped, behind its gate.
    private static func listThatWaits(_ random: inout SeededGenerator, _ queue: JSON) -> JSON {
        let children: [JSON] = (0..<random.within(2...4)).map { _ in
            [
                "source": source("l", &random), "queue": queue, "timeout": 0.2,
                "retry": ["max": 3, "initial": 20, "maxDelay": 60, "jitter": .bool(random.chance(0.5))],
            ]
        }
        return [
            "source": ["type": "list", "jobs": .array(children), "concurrency": JSON(random.within(1...2))],
            "tags": ["slow"],
        ]
    }
}
