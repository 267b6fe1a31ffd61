import JobCore
import JobModel

/// Lists of one owner that make their children in turns, each of which has room for them and all of which have not.
extension World {
    /// Under one seed in seventeen.
    static func hasWideLists(_ seed: UInt64) -> Bool { seed % 17 == 11 }

    func wideLists() {
        guard !isSettling else { return }
        scheduleAnyway(.wideLists, in: random.spread(600, 6_000))
        guard isRunning, oracle.isStarted else { return }
        let queue = JSON.string(random.pick(scenario.queues))
        // So long that many turns pass before all of a list are made.
        let text = JSON.string(String(repeating: "t", count: 8_000))
        submit(6, by: 0) { random in
            let child: JSON = [
                "source": ["type": "url", "url": .string("http://x\(random.below(1000)).test/m")], "queue": queue,
                "then": [["then": ["return": text]]],
            ]
            return ["source": ["type": "each", "in": .array((0..<55).map { JSON($0) }), "job": child]]
        }
    }
}
