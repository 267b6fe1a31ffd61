import SystemPackage
import DeferredKit
import JobModel
import Logging
import NIOCore
import Synchronization

/// Keeps the checkpoint of a `.part` up to date while it grows, so that a crash loses little of it.
///
/// Writes go on meanwhile. One entry is made at a time; the next one covers what was written during it.
final class DownloadJournal: Sendable {
    /// Bytes and time after which what was written is synced and saved again.
    private static let interval = (bytes: Int64(64 << 20), time: TimeAmount.seconds(15))
    /// So few bytes, fetched in so little time, are sooner fetched again than made durable.
    private static let negligible = (bytes: Int64(1 << 20), time: TimeAmount.seconds(2))

    private struct State {
        /// Bytes that the checkpoint saved last was of; nil before the first.
        var saved: Int64?
        /// When that was, or one could not be saved; at first, when the transfer began.
        var time: NIODeadline
        var isSaveFailed = false
        var isBusy = false
        var failure: Errno?
    }

    private let checkpoint: DownloadCheckpoint
    private let target: DownloadTarget
    private let context: SourceContext
    private let services: DownloadServices
    /// Tells the time.
    private let clock: any EventLoop
    private let state: Mutex<State>

    /// `size` is that of a `.part` which `checkpoint` tells of already, else nil.
    init(
        _ checkpoint: DownloadCheckpoint, saved size: Int64?, target: DownloadTarget, context: SourceContext,
        services: DownloadServices, clock: any EventLoop
    ) {
        self.checkpoint = checkpoint
        self.target = target
        self.context = context
        self.services = services
        self.clock = clock
        state = Mutex(State(saved: size, time: clock.now))
    }

    /// Whether an entry is due now that there are `size` bytes. A caller that gets true must make the entry.
    func isDue(at size: Int64) -> Bool {
        let now = clock.now
        return state.withLock { state in
            guard !state.isBusy, state.failure == nil else { return false }
            let elapsed = now - state.time
            // A store that failed is not asked again with each block.
            if state.isSaveFailed, elapsed < Self.interval.time { return false }
            if let saved = state.saved {
                let added = size - saved
                state.isBusy =
                    added >= Self.interval.bytes
                    || (elapsed >= Self.interval.time && added >= Self.negligible.bytes)
            } else {
                state.isBusy =
                    max(size, checkpoint.total ?? 0) >= Self.negligible.bytes || elapsed >= Self.negligible.time
            }
            return state.isBusy
        }
    }

    /// Syncs what is `written`, and saves a checkpoint of it.
    func makeEntry(of written: ByteRanges) async {
        let isFirst = state.withLock { $0.saved == nil }
        var checkpoint = checkpoint
        do throws(Errno) {
            // The first checkpoint only names the file; while this boot lasts, that is enough.
            if !isFirst {
                let (target, files) = (target, services.files)
                try await services.queue.run { () throws(Errno) in
                    try files.syncData(target.part.descriptor)
                }
                checkpoint.synced = written
            }
            let isSaved = await save(checkpoint)
            let now = clock.now
            state.withLock { state in
                if isSaved { state.saved = written.count }
                (state.time, state.isSaveFailed, state.isBusy) = (now, !isSaved, false)
            }
        } catch {
            state.withLock { state in
                state.failure = error
                state.isBusy = false
            }
        }
    }

    /// Throws where an earlier sync failed; the system reports that only once.
    func check() throws(JobError) {
        if let failure = state.withLock({ $0.failure }) { throw JobError(path: failure, "synced", target.partPath) }
    }

    /// Saves the checkpoint that was put off for a short `.part`; false where the `.part` ends up without a checkpoint.
    func close() async -> Bool {
        guard state.withLock({ $0.saved == nil }) else { return true }
        return await save(checkpoint)
    }

    private func save(_ checkpoint: DownloadCheckpoint) async -> Bool {
        do {
            try await context.saveCheckpoint(checkpoint.json).get()
            return true
        } catch is CancellationError {
            return false
        } catch {
            services.logger.warning(
                "The progress of a download could not be saved; after a crash it starts from the beginning.",
                metadata: ["path": "\(target.absolutePath)", "error": "\(error)"])
            return false
        }
    }
}
