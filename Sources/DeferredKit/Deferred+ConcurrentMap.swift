extension Deferred {
    /// Starts a piece of work for each item, only so many at a time.
    ///
    /// Its progress counts items. Cancelling it withdraws from the work that is under way, and nothing more is started
    /// where `Failure` is `any Error`; where it is not, the producers decide, and what is started later is cancelled at
    /// once.
    ///
    /// - Parameters:
    ///   - items: What there is to do.
    ///   - limit: How many are under way at a time; less than 1 counts as 1.
    ///   - transform: Starts the work for an item: the first ones on this thread, in order, each other one on the thread
    ///     that delivers the outcome of one before.
    /// - Returns: The values in the order of the items, `[]` at once for none. The first failure fails it, starts nothing
    ///   more and withdraws from the rest.
    public static func concurrentMap<T: Sendable>(
        _ items: some Collection<T>,
        limit: Int,
        _ transform: @escaping @Sendable (T) -> Deferred
    ) -> Deferred<[Success], Failure> {
        guard !items.isEmpty else { return .succeeded([]) }
        let target = Deferred<[Success], Failure>(pending: 0)
        let works = ConcurrentWorks(Array(items), transform)
        target.whenCancelled { works.cancel() }
        // Each first work takes up one of the slots, and whoever ends hands its slot on.
        for _ in 0..<min(max(limit, 1), items.count) { works.startNext(target) }
        return target
    }
}

// Unchecked: what changes is under `lock`.
/// The works of one `concurrentMap`. They hold its Deferred, as their links hold this.
private final class ConcurrentWorks<T: Sendable, Success: Sendable, Failure: Error>: @unchecked Sendable {
    private let lock = Lock()
    private let items: [T]
    private let transform: @Sendable (T) -> Deferred<Success, Failure>
    private let values: Slots<Success>
    private var next = 0
    private var done = 0
    private var isCancelled = false
    private var running: [Int: Deferred<Success, Failure>] = [:]

    init(_ items: [T], _ transform: @escaping @Sendable (T) -> Deferred<Success, Failure>) {
        self.items = items
        self.transform = transform
        values = Slots(count: items.count)
    }

    func startNext(_ target: Deferred<[Success], Failure>) {
        let index = lock.withLock { () -> Int? in
            guard next < items.count else { return nil }
            next += 1
            return next - 1
        }
        guard let index, !target.isResolved else { return }
        let work = transform(items[index]).link(
            hopping: false, to: Deferred<Success, Failure>.self, Deferred<Success, Failure>.passOn)
        let isLate = lock.withLock {
            running[index] = work
            return isCancelled
        }
        work.upon { [self] outcome in end(index, outcome, target) }
        if isLate || target.isResolved { work.cancel() }
    }

    private func end(_ index: Int, _ outcome: Result<Success, Failure>, _ target: Deferred<[Success], Failure>) {
        switch outcome {
        case .success(let value):
            values[index] = value
            let count = lock.withLock {
                done += 1
                return (done, running.removeValue(forKey: index))
            }
            target.report(ProgressUpdate(completed: Int64(count.0), total: Int64(items.count)), rising: true)
            if count.0 == items.count {
                target.settle(.success(values.moveOut()), nil)
            } else {
                startNext(target)
            }
        case .failure(let error):
            if target.settle(.failure(error), nil) { cancel() }
        }
    }

    func cancel() {
        let works = lock.withLock { () -> [Int: Deferred<Success, Failure>] in
            isCancelled = true
            let works = running
            running = [:]
            return works
        }
        for index in works.keys.sorted() { works[index]?.cancel() }
    }
}
