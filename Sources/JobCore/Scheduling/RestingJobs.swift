import DequeModule
import JobModel

/// The jobs in the middle of their chains that wait for a time or for their turn. They are stored as they are, and have left
/// the memory but for this: what waits takes next to none, however large its value is.
struct RestingJobs {
    enum Reason: Equatable {
        /// Its source is a timer; `isTooLong` where its timeout ends first.
        case timer(isTooLong: Bool)
        /// Its queue's window has it.
        case turn
    }

    struct Rest {
        let owner: UInt32
        let queue: String
        let reason: Reason
        /// What it keeps while it waits.
        let permit: HostLimits.Permit?
        /// Its time has come.
        fileprivate(set) var isDue = false
    }

    private var rests: [JobID: Rest] = [:]
    private var byOwner: [UInt32: Int] = [:]
    /// Jobs whose time has come, among others that left meanwhile.
    private var due: [UInt32: Deque<JobID>] = [:]
    /// The owners of these, the one served longest ago first.
    private var owners: Deque<UInt32> = []

    subscript(id: JobID) -> Rest? { rests[id] }
    var count: Int { rests.count }
    func count(of owner: UInt32) -> Int { byOwner[owner] ?? 0 }

    mutating func insert(_ job: Job, _ reason: Reason, _ permit: HostLimits.Permit?) {
        rests[job.id] = Rest(owner: job.owner, queue: job.spec.queue, reason: reason, permit: permit)
        byOwner[job.owner, default: 0] += 1
    }

    /// A job comes back into memory, or is gone.
    mutating func remove(_ id: JobID) -> Rest? {
        guard let rest = rests.removeValue(forKey: id) else { return nil }
        byOwner[rest.owner] = (byOwner[rest.owner] ?? 0) > 1 ? byOwner[rest.owner, default: 1] - 1 : nil
        return rest
    }

    /// The time of a job has come.
    mutating func fell(due id: JobID) {
        guard let rest = rests[id], !rest.isDue else { return }
        rests[id]?.isDue = true
        if due[rest.owner] == nil { owners.append(rest.owner) }
        due[rest.owner, default: []].append(id)
    }

    /// The first jobs, at most `limit`, that are due of the owner whose turn it is among those that `mayGoOn` admits. They are
    /// due until they are removed; what is not read goes back by ``putBack(_:)``.
    mutating func nextDue(_ limit: Int, where mayGoOn: (UInt32) -> Bool) -> [JobID] {
        for _ in 0..<owners.count {
            let owner = owners.removeFirst()
            guard mayGoOn(owner) else {
                owners.append(owner)
                continue
            }
            var ids: [JobID] = []
            while ids.count < limit, let id = due[owner]?.popFirst() {
                if rests[id]?.isDue == true { ids.append(id) }
            }
            if due[owner]?.isEmpty == true { due[owner] = nil } else { owners.append(owner) }
            if !ids.isEmpty { return ids }
        }
        return []
    }

    /// A job that was due and could not be read waits for its timer once more.
    mutating func delay(_ id: JobID) { rests[id]?.isDue = false }

    /// These jobs are due and were not read; they come first the next time.
    mutating func putBack(_ ids: some BidirectionalCollection<JobID>) {
        for id in ids.reversed() {
            guard let rest = rests[id], rest.isDue else { continue }
            if due[rest.owner] == nil { owners.append(rest.owner) }
            due[rest.owner, default: []].prepend(id)
        }
    }
}
