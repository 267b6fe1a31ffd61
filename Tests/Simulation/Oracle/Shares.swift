import JobModel

/// Who has work that can start, and who was served: what fairness is measured by (invariant 5).
///
/// Only work that can start for certain counts as work: a job that is stored as ready, that the core knows of, and that
/// nothing may be about to stop. So whoever is passed over was passed over wrongly.
struct Shares {
    /// Where a job starts: one that is ready is counted there.
    struct Place: Hashable {
        let queue: String
        let owner: UInt32
        let host: String
    }

    struct Owner {
        /// Ready jobs by host.
        var hosts: [String: Int] = [:]
        var ready = 0
        /// The turn since which it could always start and held no more than who was served.
        var since = 0
    }

    struct Queue {
        var owners: [UInt32: Owner] = [:]
        /// The owners of the latest turns; the turn `n` stands at `n % 100`.
        var served: [UInt32] = []
        var turns = 0
    }

    static let window = 100
    var queues: [String: Queue] = [:]

    mutating func add(_ place: Place) {
        queues[place.queue, default: Queue()].owners[place.owner, default: Owner()].hosts[place.host, default: 0] += 1
        let next = (queues[place.queue]?.turns ?? 0) + 1
        if queues[place.queue]?.owners[place.owner]?.ready == 0 {
            queues[place.queue]?.owners[place.owner]?.since = next
        }
        queues[place.queue]?.owners[place.owner]?.ready += 1
    }

    mutating func remove(_ place: Place) {
        guard var owner = queues[place.queue]?.owners[place.owner] else { return }
        owner.ready -= 1
        let left = (owner.hosts[place.host] ?? 1) - 1
        owner.hosts[place.host] = left > 0 ? left : nil
        if owner.ready == 0 { owner.since = (queues[place.queue]?.turns ?? 0) + 1 }
        queues[place.queue]?.owners[place.owner] = owner
    }

    /// An owner was served.
    mutating func serve(_ owner: UInt32, in name: String) {
        var queue = queues[name] ?? Queue()
        if queue.served.count < Self.window {
            queue.served.append(owner)
        } else {
            queue.served[queue.turns % Self.window] = owner
        }
        queue.turns += 1
        queues[name] = queue
    }

    mutating func disqualify(_ owner: UInt32, in name: String) {
        let next = (queues[name]?.turns ?? 0) + 1
        queues[name]?.owners[owner]?.since = next
    }

    mutating func disqualifyAll(in name: String) {
        guard var queue = queues[name] else { return }
        for owner in queue.owners.keys { queue.owners[owner]?.since = queue.turns + 1 }
        queues[name] = queue
    }

    /// Of the last 100 turns those of an owner who could start all the while, and how many were at work; nil for one who
    /// could not.
    func share(of owner: UInt32, in name: String) -> (turns: Int, owners: Int)? {
        guard let queue = queues[name], queue.served.count == Self.window, let own = queue.owners[owner], own.ready > 0,
            queue.turns - own.since >= Self.window
        else { return nil }
        var atWork = Set(queue.served)
        for (other, share) in queue.owners where share.ready > 0 { atWork.insert(other) }
        return (queue.served.count { $0 == owner }, atWork.count)
    }
}
