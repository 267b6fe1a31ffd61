// Unchecked: mutable state is under `lock`.
/// Runs operations with a limit on how many run at a time.
///
/// An operation occupies its slot from its start until the Deferred it returned has resolved; if that never resolves,
/// until it is cancelled. The operation starts on the thread that added it, or on the thread that freed the slot. The
/// number of waiting operations is unlimited.
public final class WorkQueue: @unchecked Sendable {
    private let lock = Lock()
    private var pending = WaitingEntries()
    private var running: [ObjectIdentifier: WorkQueueEntry] = [:]
    private var limit: Int
    private var isPaused: Bool
    /// Resolved when the queue is empty; nil without waiting callers.
    private var idle: Promise<Void, Never>?

    /// Creates a queue.
    ///
    /// - Parameters:
    ///   - concurrency: The maximum number of running operations; less than 1 counts as 1.
    ///   - suspended: Whether the queue starts operations only after ``isSuspended`` becomes false.
    public init(concurrency: Int, suspended: Bool = false) {
        limit = max(concurrency, 1)
        isPaused = suspended
    }

    /// Adds an operation, like ``add(priority:cancelled:_:)``; cancelled before its start, it fails with
    /// `CancellationError`.
    public func add<S>(
        priority: Int = 0,
        _ operation: @escaping @Sendable () -> Deferred<S, any Error>
    ) -> Deferred<S, any Error> {
        add(priority: priority, cancelled: { CancellationError() }, operation)
    }

    /// Adds an operation with a failure of its own type.
    ///
    /// - Parameters:
    ///   - priority: Higher priorities start first; within one priority, first in, first out.
    ///   - cancelled: Makes the failure of an operation that is cancelled before its start, or although its Deferred was
    ///     dropped unresolved, on the cancelling thread or the one that dropped it.
    ///   - operation: Called once there is a free slot.
    /// - Returns: The outcome of the operation's Deferred. Cancelling it removes the operation from the queue, or
    ///   withdraws from the operation's Deferred.
    public func add<S, F>(
        priority: Int = 0,
        cancelled: @escaping @Sendable () -> F,
        _ operation: @escaping @Sendable () -> Deferred<S, F>
    ) -> Deferred<S, F> {
        let deferred = Deferred<S, F>(pending: 0)
        let promise = Promise(deferred)
        let entry = WorkQueueEntry(deferred)
        let extras = DeferredExtras()
        extras.onCancel = { [weak entry, weak self] core in
            guard let entry, self?.remove(entry) == true else { return }
            unsafeDowncast(core, to: Deferred<S, F>.self).settle(.failure(cancelled()), nil)
        }
        deferred.extras = extras
        entry.start = { entry, queue in
            guard deferred.marks & Mark.resolved == 0 else { return queue.finish(entry) }
            let inner = operation()
            promise.follow(inner)
            // After the line above, so that the outcome exists before the slot is free.
            let slot = SlotWaiter { isLost in
                guard isLost else { return queue.finish(entry) }
                // Only cancelling the entry's own Deferred ends it now, and no producer decides the outcome.
                let end = OutcomeWaiter(hopping: false) { [weak queue, weak entry] _, _, _ in
                    if let entry { queue?.finish(entry) }
                }
                deferred.append(end, leaving: 0)
                deferred.whenCancelled { [weak deferred] in _ = deferred?.settle(.failure(cancelled()), nil) }
                if deferred.marks & Mark.cancelled != 0 { deferred.abandon() }
            }
            inner.append(slot, leaving: 0)
        }
        lock.withLock { pending.add(entry, priority: priority) }
        startNext()
        return deferred
    }

    /// The maximum number of running operations. Raising it starts more at once; lowering it stops none.
    public var concurrency: Int {
        get { lock.withLock { limit } }
        set {
            lock.withLock { limit = max(newValue, 1) }
            startNext()
        }
    }

    /// Whether operations wait even if slots are free. Running operations continue.
    public var isSuspended: Bool {
        get { lock.withLock { isPaused } }
        set {
            lock.withLock { isPaused = newValue }
            startNext()
        }
    }

    /// Cancels every operation added so far on this thread, waiting operations first.
    public func cancelAll() {
        let works = lock.withLock { (pending.all + running.values).compactMap(\.deferred) }
        Trampoline.enter { _ in
            for work in works { work.abandon() }
        }
    }

    /// Waits until the queue has no waiting or running operations. Returns early if the calling task is cancelled.
    public func drained() async {
        let idle = lock.withLock { () -> Promise<Void, Never>? in
            guard !isIdle else { return nil }
            let idle = self.idle ?? Promise()
            self.idle = idle
            return idle
        }
        // Only cancellation throws here, and then the caller needs no answer.
        try? await idle?.deferred.erased().get()
    }

    // MARK: - Slots

    private var isIdle: Bool { pending.isEmpty && running.isEmpty }

    /// Fills the free slots with waiting operations.
    private func startNext() {
        while let entry = admit() { entry.start.take()?(entry, self) }
    }

    private func admit() -> WorkQueueEntry? {
        lock.withLock {
            guard !isPaused, running.count < limit, let entry = pending.popFirst() else { return nil }
            running[ObjectIdentifier(entry)] = entry
            return entry
        }
    }

    fileprivate func finish(_ entry: WorkQueueEntry) {
        let idle = lock.withLock { () -> Promise<Void, Never>? in
            running[ObjectIdentifier(entry)] = nil
            return isIdle ? self.idle.take() : nil
        }
        idle?.succeed(())
        startNext()
    }

    /// Removes an operation that has not started; returns false if it has.
    private func remove(_ entry: WorkQueueEntry) -> Bool {
        let (start, deferred, idle) = lock.withLock {
            () -> (WorkQueueEntry.Start?, DeferredCore?, Promise<Void, Never>?) in
            guard pending.remove(entry) else { return (nil, nil, nil) }
            return (entry.start.take(), entry.deferred.take(), isIdle ? self.idle.take() : nil)
        }
        idle?.succeed(())
        return withExtendedLifetime(deferred) { start != nil }
    }
}

/// The waiting operations of a queue: by priority, highest first, and first in, first out within one priority.
private struct WaitingEntries {
    /// By ascending priority, the entries in the order of their arrival; removed ones stay until they are the majority.
    private var levels: [(priority: Int, entries: ArraySlice<WorkQueueEntry?>)] = []
    private var count = 0
    private var removed = 0

    var isEmpty: Bool { count == 0 }

    var all: [WorkQueueEntry] { levels.reversed().flatMap { $0.entries.compactMap(\.self).filter(\.isWaiting) } }

    mutating func add(_ entry: WorkQueueEntry, priority: Int) {
        let level = levels.firstIndex { $0.priority >= priority } ?? levels.endIndex
        if level == levels.endIndex || levels[level].priority > priority { levels.insert((priority, []), at: level) }
        levels[level].entries.append(entry)
        entry.isWaiting = true
        count += 1
    }

    mutating func popFirst() -> WorkQueueEntry? {
        while let level = levels.indices.last {
            while let place = levels[level].entries.indices.first {
                // The slice keeps what was removed from it.
                let entry = levels[level].entries[place].take()
                levels[level].entries.removeFirst()
                guard let entry, entry.isWaiting else {
                    removed -= 1
                    continue
                }
                entry.isWaiting = false
                count -= 1
                return entry
            }
            levels.removeLast()
        }
        return nil
    }

    /// Returns false if the entry is not waiting.
    mutating func remove(_ entry: WorkQueueEntry) -> Bool {
        guard entry.isWaiting else { return false }
        entry.isWaiting = false
        count -= 1
        removed += 1
        if removed > count + 32 {
            for level in levels.indices { levels[level].entries.removeAll { $0?.isWaiting != true } }
            levels.removeAll { $0.entries.isEmpty }
            removed = 0
        }
        return true
    }
}

// Unchecked: it is under the queue's lock, but `start` belongs to the thread that removed the entry from the queue.
/// One operation of a queue.
private final class WorkQueueEntry: @unchecked Sendable {
    typealias Start = @Sendable (WorkQueueEntry, WorkQueue) -> Void

    /// Nil once the operation was removed.
    var deferred: DeferredCore?
    var start: Start?
    var isWaiting = false

    init(_ deferred: DeferredCore) {
        self.deferred = deferred
    }
}

// Unchecked: its own fields never change; the base class guards the rest.
/// Frees an operation's slot when the operation's Deferred has resolved, or is lost unresolved.
private final class SlotWaiter: DeferredWaiter, @unchecked Sendable {
    private let end: @Sendable (_ isLost: Bool) -> Void

    init(_ end: @escaping @Sendable (_ isLost: Bool) -> Void) {
        self.end = end
        super.init(marks: 0, isInterested: false)
    }

    override func fire(from source: DeferredCore, _ trampoline: Trampoline.Reference) -> Next {
        unlock(lock() | Mark.resolved)
        end(false)
        return .done
    }

    override func orphan() { end(true) }
}
