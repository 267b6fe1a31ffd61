extension Deferred {
    /// Starts work for each item, with a limit on how much runs at a time.
    ///
    /// The progress counts items. Cancelling the result withdraws from the running work. If `Failure` is `any Error`,
    /// no more work starts; otherwise the producers decide, and work that starts later is cancelled at once.
    ///
    /// - Parameters:
    ///   - items: The items.
    ///   - limit: The maximum number of items in progress at a time; less than 1 counts as 1.
    ///   - transform: Starts the work for an item: the first ones on this thread, in order, each other one on the
    ///     thread that delivers an earlier outcome.
    /// - Returns: The values in the order of the items, or `[]` at once without items. The first failure fails the
    ///   result, starts no more work, and withdraws from the remaining work.
    public static func concurrentMap<T: Sendable>(
        _ items: some Collection<T>,
        limit: Int,
        _ transform: @escaping @Sendable (T) -> Deferred
    ) -> Deferred<[Success], Failure> {
        guard !items.isEmpty else { return .succeeded([]) }
        let target = Deferred<[Success], Failure>(pending: 0)
        let works = ConcurrentWorks(Array(items), transform)
        target.whenCancelled { works.cancel() }
        // Each initial work takes one of the slots and hands it on when it ends.
        for _ in 0..<min(max(limit, 1), items.count) { works.startNext(target) }
        return target
    }
}

// Unchecked: mutable state is under `lock`.
/// The work of one `concurrentMap`. It retains its Deferreds, whose links retain it.
private final class ConcurrentWorks<T: Sendable, Success: Sendable, Failure: Error>: @unchecked Sendable {
    private let lock = Lock()
    private let items: [T]
    private let transform: @Sendable (T) -> Deferred<Success, Failure>
    private var values: [Success?]
    private var next = 0
    private var done = 0
    private var isCancelled = false
    private var running: [Int: Deferred<Success, Failure>] = [:]

    init(_ items: [T], _ transform: @escaping @Sendable (T) -> Deferred<Success, Failure>) {
        self.items = items
        self.transform = transform
        values = Array(repeating: nil, count: items.count)
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
            let (count, _) = lock.withLock {
                values[index] = value
                done += 1
                return (done, running.removeValue(forKey: index))
            }
            target.report(ProgressUpdate(completed: Int64(count), total: Int64(items.count)), rising: true)
            if count == items.count {
                target.settle(.success(values.compactMap(\.self)), nil)
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
