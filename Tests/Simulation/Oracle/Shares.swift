import JobModel

/// Who has work that can start, and who was served: what fairness is measured by (invariant 5).
///
/// Only work that can start for certain counts as work: a job that is stored as ready, that the core knows of, and that
/// nothing may be about to stop. So whoever is passed over was passed over wrongly.
///
/// The protocol says two things. A slot goes to the owner who has the fewest, among equals to the one served longest ago:
/// that is checked at each start. And with n owners at work none gets less than 1/(2n) of any 100 starts: that cannot hold
/// of every 100 starts where jobs differ in length, since whoever's jobs take an hour keeps the slots that others give back
/// every second, is passed over for holding more, and so gets their share of the slots but few of the starts. So a start
/// counts for an owner only where it was given to them, or where they had work that could start and had no more slots than
/// whoever got it. Of any 100 of those the sentence holds, however long the jobs are: between two starts of an owner each
/// of the n - 1 others gets one at most.
struct Shares {
    /// Where a job starts: one that is ready is counted there.
    struct Key: Hashable {
        let queue: String
        let owner: UInt32
        let host: String
    }

    struct Turn {
        let number: Int
        let isOwn: Bool
    }

    struct Owner {
        /// Ready jobs by host.
        var hosts: [String: Int] = [:]
        var ready = 0
        /// The latest turns that count for this owner, in a circular buffer.
        private var turns: [Turn] = []
        private var next = 0
        /// How many of these they got.
        private(set) var own = 0
        private(set) var lastServed = 0

        fileprivate mutating func note(_ turn: Turn) {
            if turns.count < Shares.window {
                turns.append(turn)
            } else {
                if turns[next].isOwn { own -= 1 }
                turns[next] = turn
                next = (next + 1) % Shares.window
            }
            guard turn.isOwn else { return }
            own += 1
            lastServed = turn.number
        }

        /// The first of the turns; nil before there were enough.
        fileprivate var firstTurn: Int? { turns.count == Shares.window ? turns[next].number : nil }

        fileprivate mutating func forgetTurns() {
            turns = []
            next = 0
            own = 0
        }
    }

    struct Queue {
        var owners: [UInt32: Owner] = [:]
        var turns = 0
    }

    static let window = 100
    private(set) var queues: [String: Queue] = [:]

    mutating func add(_ key: Key) {
        queues[key.queue, default: Queue()].owners[key.owner, default: Owner()].hosts[key.host, default: 0] += 1
        queues[key.queue]?.owners[key.owner]?.ready += 1
    }

    mutating func remove(_ key: Key) {
        guard let left = queues[key.queue]?.owners[key.owner]?.hosts[key.host] else { return }
        queues[key.queue]?.owners[key.owner]?.hosts[key.host] = left > 1 ? left - 1 : nil
        queues[key.queue]?.owners[key.owner]?.ready -= 1
    }

    /// An owner was served, while others could have been who had no more.
    mutating func serve(_ owner: UInt32, in name: String, passingOver others: [UInt32] = []) {
        let number = (queues[name]?.turns ?? 0) + 1
        queues[name, default: Queue()].turns = number
        queues[name]?.owners[owner, default: Owner()].note(Turn(number: number, isOwn: true))
        for other in others { queues[name]?.owners[other]?.note(Turn(number: number, isOwn: false)) }
    }

    /// The queue changed: what comes now is not compared with what was before.
    mutating func forgetTurns(in name: String) {
        for owner in (queues[name]?.owners.keys).map(Array.init) ?? [] { queues[name]?.owners[owner]?.forgetTurns() }
    }

    /// Of the last 100 turns that count for an owner those that they got, and how many owners were at work meanwhile; nil
    /// before there were so many.
    func share(of owner: UInt32, in name: String) -> (turns: Int, owners: Int)? {
        guard let queue = queues[name], let own = queue.owners[owner], let first = own.firstTurn else { return nil }
        return (own.own, queue.owners.values.count { $0.lastServed >= first || $0.ready > 0 })
    }
}
