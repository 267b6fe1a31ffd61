import JobCore
import JobModel

/// One owner with more jobs than are in memory, the first of which all have to wait, while others want every slot.
extension World {
    /// Under one seed in five.
    static func hasCrowds(_ seed: UInt64) -> Bool { seed % 5 == 4 }

    func crowd() {
        guard !isSettling else { return }
        scheduleAnyway(.crowd, in: random.spread(3_600, 20_000))
        guard isRunning, oracle.isStarted, users.count > 1 else { return }
        // Few of these lists are open at a time, each until its child ends, which takes a slot of another queue. Some are
        // so large that they are in memory without their specs.
        let text = JSON.string(String(repeating: "t", count: random.chance(0.5) ? 2_500 : 10))
        submit(700, by: 0) { random in
            let child: JSON = [
                "source": ["type": "url", "url": .string("http://x\(random.below(1000)).test/l")], "queue": "q1",
            ]
            return [
                "source": ["type": "list", "jobs": .array([child])], "then": [["then": ["return": text]]],
                "queue": .string(Scenario.defaultQueue), "priority": 500,
            ]
        }
        // Behind them are jobs that could start.
        submit(100, by: 0) { Self.quick(&$0, priority: 0) }
        for index in 1..<min(4, users.count) { submit(400, by: index) { Self.quick(&$0, priority: 1000) } }
    }

    private static func quick(_ random: inout SeededGenerator, priority: Int) -> JSON {
        [
            "source": ["type": "url", "url": .string("http://x\(random.below(1000)).test/e")],
            "queue": .string(Scenario.defaultQueue), "priority": JSON(priority),
        ]
    }

    func submit(_ count: Int, by index: Int, _ json: (inout SeededGenerator) -> JSON) {
        let caller = users[index].caller
        for first in stride(from: 0, to: count, by: 100) {
            let numbers = first..<min(count, first + 100)
            let jobs = numbers.compactMap { _ in oracle.admitted(json(&random), caller, self) }
            ask(.submit(jobs), by: caller, user: index)
        }
    }
}
