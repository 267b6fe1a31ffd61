package import DeferredKit
import Dispatch
import JobCore
package import JobModel
import Synchronization

/// The progress of running jobs, for everything that shows jobs.
///
/// Progress is never stored, and no round waits for it. A list counts what its children have done.
package final class Board: Sendable {
    fileprivate struct List {
        var row: ListRow
        var rate = RateMeter()
    }

    fileprivate struct State {
        var runs: [JobID: RunProgress] = [:]
        /// Runs of which other nodes have told.
        var elsewhere: [JobID: RunProgress] = [:]
        var lists: [JobID: List] = [:]
        /// The lists among them of which other nodes have told.
        var heardLists: Set<JobID> = []
        /// The parents of running children, and the running children of each parent.
        var parents: [JobID: JobID] = [:]
        var children: [JobID: Set<JobID>] = [:]
        /// Jobs with new progress since ``takeChanges()``.
        var changed: Set<JobID> = []
        /// Whether the engine already knows that there are some.
        var isAwaited = false
        var readers: [JobID: Readers] = [:]
    }

    /// A client that waits until the program of a job has written more than `size` bytes, or a run of the job begins or ends.
    fileprivate struct Reader {
        let size: Int64
        let promise: Promise<Void, Never>
    }

    /// The clients that wait for one job.
    fileprivate struct Readers {
        var waiting: [ObjectIdentifier: Reader] = [:]
        /// Not more than the least size for which one waits.
        var least = Int64.max
    }

    private let state = Mutex(State())
    private let wake: @Sendable () -> Void

    /// `wake` is called on any thread for the first progress after ``rest()``.
    init(wake: @escaping @Sendable () -> Void) { self.wake = wake }

    /// The progress of a job; nil if the job is not running or has reported nothing.
    package func progress(of job: JobID) -> Progress? { state.withLock { $0.progress(of: job) } }

    func begin(_ progress: RunProgress, of row: JobRow) {
        state.withLock { state in
            state.runs[row.id] = progress
            state.elsewhere[row.id] = nil
            guard let parent = row.parent else { return }
            state.parents[row.id] = parent.job
            state.children[parent.job, default: []].insert(row.id)
        }
        wakeReaders(of: row.id)
    }

    /// Removes a run that is over.
    func end(_ progress: RunProgress) {
        state.withLock { state in
            guard state.runs[progress.job] === progress else { return }
            state.runs[progress.job] = nil
            if state.lists[progress.job] == nil { state.leave(progress.job) }
        }
        wakeReaders(of: progress.job)
    }

    /// Stores the present row of a job's list; nil removes the list.
    func put(_ list: ListRow?, of job: JobID) {
        let mustWake = state.withLock { state in
            guard let list else {
                state.lists[job] = nil
                if state.runs[job] == nil { state.leave(job) }
                return false
            }
            if state.lists[job]?.row.id == list.id {
                state.lists[job]?.row = list
            } else {
                state.lists[job] = List(row: list)
            }
            return state.change(job)
        }
        if mustWake { wake() }
    }

    /// Removes a job that is over.
    func end(_ job: JobID) {
        state.withLock { state in
            state.runs[job] = nil
            state.elsewhere[job] = nil
            state.lists[job] = nil
            state.leave(job)
        }
        wakeReaders(of: job)
    }

    // MARK: - Other nodes

    /// Runs, and lists, of other nodes that are kept. What is told after a job's end would stay for good.
    private static let mostElsewhere = 10_000

    /// The run of a job at another node, which `make` makes if it is new.
    func elsewhere(_ job: JobID, _ run: RunID, _ make: () -> RunProgress) -> RunProgress {
        state.withLock { state in
            if let known = state.elsewhere[job], known.run >= run { return known }
            let progress = make()
            if state.elsewhere.count >= Self.mostElsewhere { state.elsewhere = [:] }
            state.elsewhere[job] = progress
            return progress
        }
    }

    /// Stores a list as another node has it, unless more of it has ended as far as this one knows.
    func hear(_ list: ListRow) {
        if let known = self.list(of: list.job), (known.id, known.ended) >= (list.id, list.ended) { return }
        state.withLock { state in
            if state.heardLists.count >= Self.mostElsewhere { state.forgetHeardLists() }
            state.heardLists.insert(list.job)
        }
        put(list, of: list.job)
    }

    /// Forgets what other nodes have told of jobs that have changed since, or of all, as some of these nodes may be gone.
    func forget(_ jobs: [JobID], all: Bool) {
        state.withLock { state in
            if all {
                state.elsewhere = [:]
                state.forgetHeardLists()
            }
            for job in jobs where state.runs[job] == nil {
                state.elsewhere[job] = nil
                state.lists[job] = nil
                state.heardLists.remove(job)
                state.leave(job)
            }
        }
        for job in jobs { wakeReaders(of: job) }
    }

    /// Whether what it has of a job can be shown while the job's row names this run.
    package func isAbout(_ run: RunID?, of job: JobID) -> Bool {
        state.withLock { state in
            state.runs[job] != nil || state.lists[job] != nil || state.elsewhere[job].map { $0.run == run } ?? true
        }
    }

    func list(of job: JobID) -> ListRow? { state.withLock { $0.lists[job]?.row } }

    /// The running sources of each owner in each queue.
    package var slots: [String: [UInt32: Int]] {
        state.withLock { state in
            state.runs.values.reduce(into: [:]) { $0[$1.queue, default: [:]][$1.owner, default: 0] += 1 }
        }
    }

    // MARK: - Output of programs

    /// The run of the program that a job runs; nil if it runs none.
    package func program(of job: JobID) -> RunProgress? {
        state.withLock { $0.run(of: job) }.flatMap { $0.isProgram ? $0 : nil }
    }

    /// Resolves `promise` when the program of the job has written more than `size` bytes, or a run of the job begins or ends.
    package func awaitOutput(of job: JobID, beyond size: Int64, _ promise: Promise<Void, Never>) {
        let id = ObjectIdentifier(promise.deferred)
        state.withLock { state in
            var readers = state.readers.removeValue(forKey: job) ?? Readers()
            readers.waiting[id] = Reader(size: size, promise: promise)
            readers.least = min(readers.least, size)
            state.readers[job] = readers
        }
        promise.deferred.upon { [weak self] _ in
            self?.state.withLock { state in
                state.readers[job]?.waiting[id] = nil
                if state.readers[job]?.waiting.isEmpty == true { state.readers[job] = nil }
            }
        }
    }

    /// Wakes those that wait for a program to have written as much.
    func wakeReaders(of job: JobID, at size: Int64 = .max) {
        let woken = state.withLock { state -> [Reader] in
            // A program may write very often, and very many may wait for more.
            guard let readers = state.readers[job], readers.least < size else { return [] }
            state.readers[job]?.least = readers.waiting.values.map(\.size).filter { $0 >= size }.min() ?? .max
            return readers.waiting.values.filter { $0.size < size }
        }
        for reader in woken { reader.promise.succeed(()) }
    }

    // MARK: - Changes

    /// Notes that a run has reported for the first time since ``takeChanges()``.
    func changed(_ progress: RunProgress) {
        let mustWake = state.withLock { state in
            state.run(of: progress.job) === progress && state.change(progress.job)
        }
        if mustWake { wake() }
    }

    /// Jobs with news and the lists around them, with the news of each.
    func takeChanges() -> [JobID: RunProgress.News] {
        state.withLock { state in
            var changes: [JobID: RunProgress.News] = [:]
            for job in exchange(&state.changed, with: []) {
                changes[job] = state.run(of: job)?.takeNews() ?? RunProgress.News()
                var next = state.parents[job]
                while let parent = next, changes[parent] == nil {
                    changes[parent] = RunProgress.News()
                    next = state.parents[parent]
                }
            }
            return changes
        }
    }

    /// Lets the next progress call `wake`; returns false if there already is some.
    func rest() -> Bool {
        state.withLock { state in
            state.isAwaited = !state.changed.isEmpty
            return !state.isAwaited
        }
    }
}

extension Board.State {
    fileprivate func run(of job: JobID) -> RunProgress? { runs[job] ?? elsewhere[job] }

    fileprivate mutating func forgetHeardLists() {
        for job in exchange(&heardLists, with: []) { lists[job] = nil }
    }

    /// Returns true if the engine must be told.
    fileprivate mutating func change(_ job: JobID) -> Bool {
        changed.insert(job)
        defer { isAwaited = true }
        return !isAwaited
    }

    fileprivate mutating func leave(_ job: JobID) {
        changed.remove(job)
        guard let parent = parents.removeValue(forKey: job) else { return }
        children[parent]?.remove(job)
        if children[parent]?.isEmpty == true { children[parent] = nil }
    }

    /// The progress of a list is in bytes if any child counts bytes, else in finished children.
    fileprivate mutating func progress(of job: JobID) -> Progress? {
        guard let list = lists[job]?.row else { return run(of: job)?.latest }
        let running = children[job] ?? []
        var bytes = list.bytes
        var total: Int64? = running.count < list.total - list.ended ? nil : bytes
        var countsBytes = bytes > 0
        for child in running {
            guard let progress = progress(of: child), progress.unit == .bytes else {
                total = nil
                continue
            }
            countsBytes = true
            bytes = bytes.saturatingAdding(progress.completed)
            total = total.flatMap { sum in progress.total.map { sum.saturatingAdding($0) } }
        }
        var sum =
            countsBytes
            ? Progress(completed: bytes, total: total)
            : Progress(completed: Int64(list.ended), total: Int64(list.total), unit: .jobs)
        sum.rate = lists[job]?.rate.measure(sum.completed, at: .now())
        return sum
    }
}
