import DeferredKit
import JobModel
import Logging
import NIOCore
import Synchronization
import SystemPackage

/// Saves the checkpoint of a growing `.part` file from time to time, so that a crash loses little of it.
final class DownloadJournal: Sendable {
    /// Files below `size` that arrive within `time` get no checkpoint: fetching them again is cheaper.
    private static let negligible = (size: Int64(1 << 20), time: TimeAmount.seconds(2))
    private static let interval = TimeAmount.seconds(15)

    let checkpoint: DownloadCheckpoint
    let part: DownloadedPart
    private let target: DownloadTarget
    private let transfer: Transfer
    /// Whether a checkpoint of this file is saved.
    private let isSaved: Mutex<Bool>

    init(
        _ checkpoint: DownloadCheckpoint, isSaved: Bool, of part: DownloadedPart, _ target: DownloadTarget,
        _ transfer: Transfer
    ) {
        self.checkpoint = checkpoint
        self.part = part
        self.target = target
        self.transfer = transfer
        self.isSaved = Mutex(isSaved)
    }

    /// Saves checkpoints until the task is cancelled or the transfer interrupted; throws if the file cannot be synced.
    func run() async throws(JobError) {
        if !isSaved.withLock(\.self) {
            let isLarge = max(part.count, checkpoint.total ?? 0) >= Self.negligible.size
            guard await sleep(for: isLarge ? .zero : Self.negligible.time) else { return }
            // The first checkpoint only names the file: until the machine restarts, that is enough.
            await save(checkpoint)
        }
        var saved = part.count
        while await sleep(for: Self.interval) {
            let written = part.written
            guard written.count > saved else { continue }
            do throws(Errno) {
                try await transfer.userFiles.run { [target, files = transfer.files] () throws(Errno) in
                    try files.syncData(target.part.descriptor)
                }
            } catch {
                throw JobError(path: error, "synced", target.partPath)
            }
            var checkpoint = checkpoint
            checkpoint.synced = written
            await save(checkpoint)
            saved = written.count
        }
    }

    /// Waits; false if the transfer ended meanwhile.
    private func sleep(for pause: TimeAmount) async -> Bool {
        do throws(JobError) { try await transfer.sleep(for: pause) } catch { return false }
        return true
    }

    /// Saves the first checkpoint if none was saved; false if the file ends up without one.
    func close() async -> Bool {
        if !isSaved.withLock(\.self) { await save(checkpoint) }
        return isSaved.withLock(\.self)
    }

    private func save(_ checkpoint: DownloadCheckpoint) async {
        do {
            try await transfer.context.saveCheckpoint(checkpoint.json).get()
            isSaved.withLock { $0 = true }
        } catch is CancellationError {
            // A cancelled download leaves no checkpoint.
        } catch {
            transfer.logger.warning(
                "The progress of a download could not be saved; after a crash it starts from the beginning.",
                metadata: ["path": "\(target.absolutePath)", "error": "\(error)"])
        }
    }
}
