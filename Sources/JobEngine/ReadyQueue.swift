import HeapModule
import JobModel
import JobStore

/// A queue's settings, its places, and a window on the jobs that wait for one.
///
/// The window is the beginning of the queue's starting order, sorted into a lane for each host, so that a host at its
/// limit holds up nobody else. What lies behind the window is in the store only. A few jobs from behind it can be in the
/// window too: those that were fetched because all of the others wait for a host.
///
/// It is an object, like its lanes, so that no copy of it ever makes a heap be copied.
final class ReadyQueue {
    /// A job that could start or, if the engine runs it already, go on.
    struct Entry: Comparable {
        let position: ReadyPosition
        let queue: String
        let host: String?
        /// The job, unless it is so large that it is fetched again when its turn comes.
        let job: Job?
        /// Whether the engine runs it already, so that the store would not give it again.
        var isUnderWay = false
        /// Tells this entry from an earlier one of the same job, which was removed.
        fileprivate var stamp = 0

        /// An entry for a job that is in the middle of its chain.
        init(underWay position: ReadyPosition, queue: String, host: String?) {
            self.position = position
            self.queue = queue
            self.host = host
            job = nil
            isUnderWay = true
        }

        static func < (left: Entry, right: Entry) -> Bool { left.position < right.position }
        static func == (left: Entry, right: Entry) -> Bool { left.position == right.position }
    }

    /// The jobs of one host.
    private final class Lane {
        var heap = Heap<Entry>()
    }

    /// Jobs that the window takes at once from the store.
    static let windowSize = 1024
    /// Bytes of a spec beyond which the window keeps only its number.
    static let largeSpec = 16 << 10

    var settings: QueueSettings
    /// Places that are taken.
    var running = 0
    private var lanes: [String: Lane] = [:]
    /// The jobs in the window, with the stamps of their entries.
    private var members: [JobID: Int] = [:]
    private var lastStamp = 0
    /// Entries in the lanes that were removed meanwhile.
    private var stale = 0
    /// The last position of the window; nil when the window reaches to the end of the queue.
    private(set) var horizon: ReadyPosition?
    /// A fetch from the store is under way.
    private(set) var isFetching = false
    /// A job behind the window came while a fetch was under way, which may not have seen it.
    private var missedOne = false

    /// An empty window; what the store holds is behind it.
    init(settings: QueueSettings, storeIsEmpty: Bool) {
        self.settings = settings
        horizon = storeIsEmpty ? nil : ReadyPosition(priority: .max, id: 0)
    }

    var hasFreePlace: Bool { !settings.isSuspended && running < settings.concurrency }
    var isEmpty: Bool { members.isEmpty && horizon == nil }

    /// Takes in a job that became ready. One behind the window stays in the store, unless it is under way.
    func insert(_ entry: Entry) {
        if entry.isUnderWay || !isBehindWindow(entry.position) { add(entry) }
    }

    /// The same for a stored job, of which an entry is made only where it is taken in.
    func insert(_ job: Job) {
        if !isBehindWindow(job.readyPosition) { add(Entry(job)) }
    }

    /// Whether what became ready is behind the window, which is trimmed where it is full.
    private func isBehindWindow(_ position: ReadyPosition) -> Bool {
        if members.count >= Self.windowSize * 2 { trim() }
        guard let horizon, position > horizon else { return false }
        missedOne = missedOne || isFetching
        return true
    }

    private func add(_ entry: Entry) {
        guard members[entry.position.id] == nil else { return }
        lastStamp += 1
        var entry = entry
        entry.stamp = lastStamp
        members[entry.position.id] = lastStamp
        let host = entry.host ?? ""
        let lane = lanes[host] ?? Lane()
        lane.heap.insert(entry)
        lanes[host] = lane
    }

    /// Leaves the last half of the window to the store.
    private func trim() {
        let entries = live().sorted()
        let kept = entries.filter { !$0.isUnderWay }.prefix(Self.windowSize)
        guard let last = kept.last else { return }
        horizon = last.position
        refill(kept + entries.filter(\.isUnderWay))
    }

    private func refill(_ entries: [Entry]) {
        lanes = [:]
        members = [:]
        stale = 0
        for entry in entries { add(entry) }
    }

    /// Forgets a job. Its entry stays in its lane until it comes out, or until too many such are there.
    func remove(_ id: JobID) {
        guard members.removeValue(forKey: id) != nil else { return }
        stale += 1
        if stale > Self.windowSize { refill(live()) }
    }

    private func live() -> [Entry] {
        lanes.values.flatMap(\.heap.unordered).filter { members[$0.position.id] == $0.stamp }
    }

    /// Takes out the first job whose host is open.
    func popFirst(where isOpen: (String) -> Bool) -> Entry? {
        while true {
            var best: (host: String, lane: Lane, position: ReadyPosition)?
            for (host, lane) in lanes where host.isEmpty || isOpen(host) {
                guard let position = lane.heap.min?.position else { continue }
                if let found = best, found.position < position { continue }
                best = (host, lane, position)
            }
            guard let best, let entry = best.lane.heap.popMin() else { return nil }
            if best.lane.heap.isEmpty { lanes[best.host] = nil }
            // One that was removed meanwhile is skipped.
            if members[entry.position.id] == entry.stamp {
                members[entry.position.id] = nil
                return entry
            }
            stale -= 1
        }
    }

    /// What to fetch from the store now, if anything. `closed` are the hosts that cannot be asked.
    enum Fetch: Equatable {
        /// The jobs behind the window.
        case more(after: ReadyPosition?)
        /// Jobs from anywhere that do not wait for those hosts.
        case around(Set<String>)
    }

    /// Where the store goes on; nil at its beginning.
    private var place: ReadyPosition? { horizon?.priority == .max ? nil : horizon }

    func nextFetch(closed: (String) -> Bool) -> Fetch? {
        guard !isFetching, horizon != nil else { return nil }
        if members.count < Self.windowSize / 2 {
            isFetching = true
            return .more(after: place)
        }
        guard hasFreePlace, lanes.keys.allSatisfy({ !$0.isEmpty && closed($0) }) else { return nil }
        isFetching = true
        return .around(Set(lanes.keys))
    }

    /// Takes in what a fetch gave. `known` are those that changed since it began.
    func fetched(_ fetch: Fetch, _ jobs: [Job], limit: Int, known: Set<JobID>) {
        isFetching = false
        if case .more(let start) = fetch, start != place {
            // Meanwhile the end of the window came forward: what was fetched lies too far behind it.
            missedOne = false
            return
        }
        for job in jobs where !known.contains(job.id) { add(Entry(job)) }
        if case .more = fetch {
            if jobs.count < limit, !missedOne {
                horizon = nil
            } else if let last = jobs.last {
                horizon = ReadyPosition(priority: last.spec.priority, id: last.id)
            }
        }
        missedOne = false
    }

    func fetchFailed() {
        isFetching = false
    }
}

extension ReadyQueue.Entry {
    init(_ job: Job) {
        position = job.readyPosition
        queue = job.spec.queue
        host = job.host
        self.job = job.spec.size <= ReadyQueue.largeSpec ? job : nil
    }
}

extension Job {
    fileprivate var readyPosition: ReadyPosition { ReadyPosition(priority: spec.priority, id: id) }
}
