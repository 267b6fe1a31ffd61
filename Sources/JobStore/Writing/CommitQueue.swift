import Dispatch
import GRDB
import Glibc
import JobModel
import Synchronization

/// Runs changes on one thread, in the order they came, as many as wait in one transaction.
///
/// What arrives while a group is being synced goes into the next one. The list of those that wait has no bound of its own:
/// each stands for a call that its caller counts (`limits.inFlight`, the running jobs).
///
/// The order is that of all users together, so a change waits for what others had under way when it came. That is little, as
/// it is bounded for each of them before it gets here: submissions by their size while others are there (`Turns` of JobServer),
/// results by `PendingJobs` of JobCore, and by `EngineExecutor`, where a user whose change was large pauses; jobs of schedules
/// by `mostAdvancing`, other calls by their turns.
final class CommitQueue: Sendable {
    /// A call that waits for its group.
    struct Change: Sendable {
        /// How far the change got in this transaction.
        enum Step {
            /// It is whole; this tells the caller so once it is durable.
            case done(@Sendable () -> Void)
            /// The rest is for a later transaction.
            case unfinished(Change)
        }

        let run: @Sendable (Writer) throws -> Step
        let fail: @Sendable (StoreError) -> Void
    }

    /// The most that one transaction takes on, unless a single change is more.
    struct Bound: Sendable {
        var changes = 4_096
        var bytes = 32 << 20
        /// Pages in the log from which on it is written into the database beside the commits..
        var pagesInLog = 2_000
        /// .. and from which on the commits wait for that.
        var mostPagesInLog = 10_000
    }

    private struct State {
        var waiting: [Change] = []
        var isDraining = false
        var isClosed = false
    }

    private let state = Mutex(State())
    /// Where all changes run; what is put behind them here runs once the store is at rest.
    let queue = DispatchQueue(label: "deferd.store.writer")
    private let pool: DatabasePool
    private let checkpointer: Checkpointer
    private let file: GrowingFile
    // Once made it is touched on `queue` only, which runs one block at a time.
    private nonisolated(unsafe) var writer: Writer?
    private let bound: Bound
    private let report: CheckpointReport

    init(_ pool: DatabasePool, bound: Bound = Bound(), report: CheckpointReport) throws {
        self.pool = pool
        self.bound = bound
        self.report = report
        checkpointer = try Checkpointer(pool.path, report)
        let file = GrowingFile(pool.path)
        self.file = file
        writer = try pool.writeWithoutTransaction { connection in try Writer(connection, growing: file) }
    }

    /// Puts a change behind those that wait.
    func enqueue(_ change: Change) {
        let (isClosed, mustStart) = state.withLock { state in
            if state.isClosed { return (true, false) }
            state.waiting.append(change)
            defer { state.isDraining = true }
            return (false, !state.isDraining)
        }
        if isClosed { return queue.async { change.fail(.closed) } }
        if mustStart { queue.async { self.drain() } }
    }

    /// Refuses further changes, commits those before, waits for `reads`, closes the database and calls `done`.
    func close(after reads: DispatchGroup, _ done: @escaping @Sendable () -> Void) {
        state.withLock { $0.isClosed = true }
        queue.async {
            self.checkpointer.close()
            reads.wait()
            // Nothing is lost where this fails: the next start takes up the log.
            self.report.run {
                _ = try self.pool.writeWithoutTransaction { connection in
                    self.writer = nil
                    try connection.checkpoint(.truncate)
                }
            }
            if (try? self.pool.close()) != nil { self.removeEmptyLog() }
            self.file.close()
            done()
        }
    }

    /// Removes the log and its index where the log is empty, as the pool's last connection may have been one that only reads.
    private func removeEmptyLog() {
        guard (try? DatabaseHeader.logLength(of: pool.path)) == 0 else { return }
        for ending in ["-wal", "-shm"] { unlink(pool.path + ending) }
    }

    /// The changes that wait. Where there are none, and nothing else is to be done, the next one starts to drain again.
    private func dequeueAll(mayRest: Bool) -> [Change] {
        state.withLock { state in
            if state.waiting.isEmpty, mayRest { state.isDraining = false }
            defer { state.waiting.removeAll() }
            return state.waiting
        }
    }

    private func drain() {
        var mayShrink = true
        while true {
            let changes = dequeueAll(mayRest: !mayShrink)
            if changes.isEmpty {
                guard mayShrink else { return }
                mayShrink = shrink()
            } else {
                mayShrink = true
            }
            var rest = changes[...]
            while !rest.isEmpty {
                commit(&rest)
                checkLog()
            }
        }
    }

    /// Gives some free pages back to the file system; false where there is nothing more to do.
    private func shrink() -> Bool {
        // A stop does not wait for it.
        guard let writer, writer.mayHaveFreePages, !state.withLock(\.isClosed) else { return false }
        do {
            let isGoingOn = try pool.writeWithoutTransaction { _ in try writer.releasePages() }
            // The file gets shorter as the log is written into it.
            if writer.hasReleased, !isGoingOn {
                writer.hasReleased = false
                checkpointer.start { self.queue.async { self.checkLog() } }
            } else {
                checkLog()
            }
            return isGoingOn
        } catch {
            // It is tried again after the next removal; nothing depends on it.
            writer.mayHaveFreePages = false
            return false
        }
    }

    /// Commits the first of `changes`, as many as one transaction takes.
    private func commit(_ changes: inout ArraySlice<Change>, isLastTry: Bool = false) {
        let group = changes
        var steps: [Change.Step] = []
        do {
            try transaction { writer in
                for change in group {
                    steps.append(try change.run(writer))
                    if writer.load.changes >= bound.changes || writer.load.bytes >= bound.bytes { break }
                }
            }
            changes = changes.dropFirst(steps.count)
            finish(steps)
        } catch {
            // Where the last one run failed, it is not among the steps.
            let tried = group.prefix(steps.count + 1)
            changes = changes.dropFirst(tried.count)
            if tried.count > 1, Self.isOfOneChange(error) {
                for change in tried { commitAlone(change) }
            } else if Room.isLacking(error), !isLastTry, reclaimLogRoom() {
                // Each by itself, as those that need no more room than there is can go on, removals first of all.
                for change in tried { commitAlone(change, isLastTry: true) }
            } else {
                let failure = StoreError(.write, error, database: pool.path)
                for change in tried { change.fail(failure) }
            }
        }
    }

    private func commitAlone(_ change: Change, isLastTry: Bool = false) {
        var alone = ArraySlice([change])
        commit(&alone, isLastTry: isLastTry)
    }

    /// Writes all of the log into the database, so that its room can be used anew; false where that cannot be done.
    private func reclaimLogRoom() -> Bool {
        checkpointer.wait()
        writer?.isShortOfRoom = true
        do {
            try pool.writeWithoutTransaction { _ in try writer?.restartLog() }
            return true
        } catch {
            report.run { throw error }
            return false
        }
    }

    /// Has the log written into the database where it has become long, after the callers were told.
    private func checkLog() {
        let pages = writer?.pagesInLog ?? 0
        if pages >= bound.mostPagesInLog { checkpointer.wait() }
        if checkpointer.consumeWritten() || pages >= bound.mostPagesInLog {
            // Where it fails the log is still whole, and the next commits try again.
            report.run { try pool.writeWithoutTransaction { _ in try writer?.checkpoint() } }
        } else if pages >= bound.pagesInLog {
            checkpointer.start { self.queue.async { self.checkLog() } }
        }
    }

    private func transaction(_ body: (Writer) throws -> Void) throws {
        try pool.writeWithoutTransaction { _ in
            guard let writer else { throw StoreError.closed }
            try writer.commit { try body(writer) }
        }
    }

    private func finish(_ steps: [Change.Step]) {
        var unfinished: [Change] = []
        for step in steps {
            switch step {
            case .done(let tell): tell()
            case .unfinished(let change): unfinished.append(change)
            }
        }
        if !unfinished.isEmpty { state.withLock { $0.waiting.append(contentsOf: unfinished) } }
    }

    /// Whether a failure lies in the change itself, so that the others of its group can do without it.
    private static func isOfOneChange(_ error: any Error) -> Bool {
        guard let error = error as? DatabaseError else { return true }
        switch error.resultCode {
        case .SQLITE_CONSTRAINT, .SQLITE_TOOBIG, .SQLITE_MISMATCH, .SQLITE_RANGE: return true
        default: return false
        }
    }
}
