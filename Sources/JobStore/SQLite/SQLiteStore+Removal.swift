import JobModel

/// Many jobs are removed in several transactions, so that other writes are not delayed. Descendants go first and the
/// root last, so that a removal that was cut short can be repeated.
extension SQLiteStore {
    func remove(_ job: JobID, _ done: @escaping @Sendable (Result<[RemovedJob], StoreError>) -> Void) {
        remove(done) { writer in
            let tree = try writer.tree(of: job)
            // A new job with this key must not join a job that is about to be removed.
            if tree.count > writer.largestRemoval { try writer.freeKey(of: job) }
            return tree
        }
    }

    func removeChildren(
        of parent: JobID, fromLink link: Int, _ done: @escaping @Sendable (Result<[RemovedJob], StoreError>) -> Void
    ) {
        remove(done, { writer in try writer.removeTemplates(of: parent, fromLink: link) }) { writer in
            try writer.trees(fromLink: link, of: parent)
        }
    }

    /// Removes the jobs that `find` gives, from the last one on, and then runs `finish`.
    private func remove(
        _ done: @escaping @Sendable (Result<[RemovedJob], StoreError>) -> Void,
        _ finish: @escaping @Sendable (Writer) throws -> Void = { _ in },
        _ find: @escaping @Sendable (Writer) throws -> [RemovedJob]
    ) {
        queue.enqueue(
            CommitQueue.Change(
                run: { writer in
                    let jobs = try find(writer)
                    return try Self.remove(jobs, upTo: jobs.count, writer, finish, done)
                },
                fail: { done(.failure($0)) }))
    }

    private static func remove(
        _ jobs: [RemovedJob], upTo end: Int, _ writer: Writer, _ finish: @escaping @Sendable (Writer) throws -> Void,
        _ done: @escaping @Sendable (Result<[RemovedJob], StoreError>) -> Void
    ) throws -> CommitQueue.Change.Step {
        let start = max(0, end - writer.largestRemoval)
        try writer.remove(jobs[start..<end].reversed().map(\.id))
        guard start > 0 else {
            try finish(writer)
            return .done { done(.success(jobs)) }
        }
        return .unfinished(
            CommitQueue.Change(
                run: { writer in try remove(jobs, upTo: start, writer, finish, done) },
                // What is gone is gone, and its caller has to know.
                fail: { _ in done(.success(Array(jobs[start...]))) }))
    }

    // MARK: Purging

    func purge(
        finishedBefore time: Timestamp, keeping count: Int, atMost limit: Int,
        _ done: @escaping @Sendable (Result<[RemovedJob], StoreError>) -> Void
    ) {
        // Counting the jobs to keep takes a while where they are many; nothing has to wait for that but the purge.
        read({ reader in try reader.purgeable(before: time, keeping: count) }) { [queue] found in
            switch found {
            case .failure(let error): done(.failure(error))
            case .success(let ends): queue.enqueue(Purge(ends: ends[...], roots: max(0, limit), done: done).change)
            }
        }
    }

    /// Removes the finished root jobs of an owner that ended first, with all below them: as many as take up so many bytes,
    /// but at most `count`.
    func purgeOldest(
        _ count: Int, freeing bytes: Int64, of owner: UInt32,
        _ done: @escaping @Sendable (Result<[RemovedJob], StoreError>) -> Void
    ) {
        let last = FinishedPosition(finishedAt: Timestamp(milliseconds: .max), id: .max)
        let end = FinishedEnd(owner: Int64(owner), last: last)
        queue.enqueue(Purge(ends: [end], roots: max(0, count), bytes: bytes, done: done).change)
    }

    /// The rest of a purge. Each transaction searches for finished jobs again, as one may have been retried since.
    private struct Purge: Sendable {
        /// The last ones that may go, of owners who may still have some.
        var ends: ArraySlice<FinishedEnd>
        /// Roots that may still go.
        var roots: Int
        /// Bytes that are still to go.
        var bytes = Int64.max
        /// Bytes of the last tree that are gone, while it is not gone as a whole.
        var ofTree: Int64 = 0
        var removed: [RemovedJob] = []
        let done: @Sendable (Result<[RemovedJob], StoreError>) -> Void

        var change: CommitQueue.Change {
            CommitQueue.Change(
                run: { writer in try run(writer) },
                // What is gone is gone, and its caller has to know.
                fail: { error in done(removed.isEmpty ? .failure(error) : .success(removed)) })
        }

        private var mayGoOn: Bool { roots > 0 && bytes > 0 }

        private func run(_ writer: Writer) throws -> CommitQueue.Change.Step {
            var rest = self
            var left = writer.largestRemoval
            while let end = rest.ends.first, rest.mayGoOn, left > 0 {
                let roots = try writer.finished(upTo: end, atMost: min(rest.roots, left))
                for root in roots where left > 0 && rest.mayGoOn {
                    let tree = try writer.tree(of: root)
                    let part = tree.suffix(left).reversed()
                    try writer.remove(part.map(\.id))
                    rest.removed += part
                    left -= part.count
                    for job in part { rest.ofTree = rest.ofTree.saturatingAdding(job.size) }
                    guard part.count == tree.count else { continue }
                    rest.roots -= 1
                    rest.bytes = rest.bytes.saturatingSubtracting(rest.ofTree)
                    rest.ofTree = 0
                }
                if roots.isEmpty { rest.ends.removeFirst() }
            }
            guard !rest.ends.isEmpty, rest.mayGoOn else {
                return .done { [removed = rest.removed] in done(.success(removed)) }
            }
            return .unfinished(rest.change)
        }
    }
}
