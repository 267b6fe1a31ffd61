import DeferredKit
import JobModel
import Logging
import Synchronization

/// Keeps the note about a `.part` up to date while it grows, so that a crash loses little of it.
///
/// Writes go on meanwhile. One entry is made at a time; what becomes due during it is made up by the next.
final class DownloadJournal: Sendable {
    /// Bytes and time after which what was written is synced and noted again.
    private static let interval = (bytes: Int64(64 << 20), time: Duration.seconds(15))
    /// What is fetched again sooner than noted durably: as much in as little time.
    private static let negligible = (bytes: Int64(1 << 20), time: Duration.seconds(2))

    private struct State {
        /// What was noted last; nil before the first note.
        var noted: (size: Int64, at: ContinuousClock.Instant)?
        /// When the note was to be saved last, but could not be.
        var failedAt: ContinuousClock.Instant?
        var isBusy = false
        var failure: SystemError?
    }

    private let note: DownloadNote
    private let target: DownloadTarget
    private let context: SourceContext
    private let services: DownloadServices
    private let start = ContinuousClock.now
    private let state: Mutex<State>

    /// `size` is that of a `.part` which `note` tells of already, else nil.
    init(
        _ note: DownloadNote, noted size: Int64?, target: DownloadTarget, context: SourceContext,
        services: DownloadServices
    ) {
        self.note = note
        self.target = target
        self.context = context
        self.services = services
        let start = start
        state = Mutex(State(noted: size.map { ($0, start) }))
    }

    /// Whether an entry is to be made now that there are `size` bytes; whoever is told so must make it.
    func isDue(at size: Int64) -> Bool {
        let now = ContinuousClock.now
        return state.withLock { state in
            guard !state.isBusy, state.failure == nil else { return false }
            // A store that fails is not asked again with every block.
            if let failedAt = state.failedAt, now - failedAt < Self.interval.time { return false }
            if let noted = state.noted {
                let isDue =
                    size - noted.size >= Self.interval.bytes
                    || (now - noted.at >= Self.interval.time && size - noted.size >= Self.negligible.bytes)
                guard isDue else { return false }
            } else {
                guard max(size, note.total ?? 0) >= Self.negligible.bytes || now - start >= Self.negligible.time else {
                    return false
                }
            }
            state.isBusy = true
            return true
        }
    }

    /// Syncs the first `size` bytes and notes them.
    func makeEntry(at size: Int64) async {
        let isFirst = state.withLock { $0.noted == nil }
        var note = note
        do throws(SystemError) {
            // The first note only names the file; while this boot lasts, that is enough.
            if !isFirst {
                let (target, files) = (target, services.files)
                try await services.queue.run { () throws(SystemError) in
                    try files.syncData(target.part.descriptor)
                }
                note.synced = size
            }
            let isSaved = await save(note)
            state.withLock { state in
                if isSaved { state.noted = (size, .now) }
                state.failedAt = isSaved ? nil : .now
                state.isBusy = false
            }
        } catch {
            state.withLock { state in
                state.failure = error
                state.isBusy = false
            }
        }
    }

    /// Throws where an earlier sync failed; the system reports that only once.
    func check() throws(SystemError) {
        if let failure = state.withLock({ $0.failure }) { throw failure }
    }

    /// Notes the file where that was not worth it before; false where no note tells of it.
    func close() async -> Bool {
        guard state.withLock({ $0.noted == nil }) else { return true }
        return await save(note)
    }

    private func save(_ note: DownloadNote) async -> Bool {
        do {
            try await context.saveNote(note.json).get()
            return true
        } catch {
            services.logger.warning(
                "The progress of a download could not be noted; after a crash it starts from the beginning.",
                metadata: ["path": "\(target.absolutePath)", "error": "\(error)"])
            return false
        }
    }
}
