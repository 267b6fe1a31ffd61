import JobCore
import JobModel

/// Users who connect and leave, while others have many jobs that end at once: while somebody else is connected only a few jobs of
/// an owner may be on their way to the store before the next one starts.
extension World {
    /// Under one seed in twenty-three.
    static func hasNeighbours(_ seed: UInt64) -> Bool { seed % 23 == 3 }

    func usersChange() {
        guard !isSettling else { return }
        scheduleAnyway(.usersChange, in: random.spread(1, 600))
        guard isRunning else { return }
        let connected: ConnectedUsers =
            switch random.choose([60, 30, 10]) {
            case 0: .several
            case 1: .one(random.pick(users).caller.uid)
            default: .none
            }
        feed(.users(connected))
    }

    func manyOutcomes() {
        guard !isSettling else { return }
        scheduleAnyway(.manyOutcomes, in: random.spread(30, 1_200))
        guard isRunning, oracle.isStarted else { return }
        let queue = JSON.string(random.pick(scenario.queues))
        submit(2, by: random.below(users.count)) { random in
            let child: JSON = [
                "source": ["type": "value", "value": 1], "queue": queue, "then": [["both": ["return": 2]]],
            ]
            return ["source": ["type": "list", "jobs": .array(Array(repeating: child, count: random.within(10...50)))]]
        }
    }
}
