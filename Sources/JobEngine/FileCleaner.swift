import DataSources
import DeferredKit
import Dispatch
import JobModel
import JobStore
import Logging
import Synchronization

/// Removes the files of removed jobs, on a queue of its own: bodies, and the `.part` files of unfinished downloads.
final class FileCleaner: Sendable {
    let bodies: BodyDirectory
    private let queue = DispatchQueue(label: "deferd.bodies", qos: .utility)
    private let timers = DispatchQueue(label: "deferd.files.patience", qos: .utility)
    private let store: any JobStore
    private let library: SourceLibrary
    private let logger: Logger
    /// Downloads whose cancelling is under way.
    private let cancelled = Mutex<[JobID: Deferred<Void, Never>]>([:])

    /// How long anybody waits for files to be removed.
    private static let patience = DispatchTimeInterval.seconds(1)

    init(bodies: BodyDirectory, store: any JobStore, library: SourceLibrary, logger: Logger) {
        self.bodies = bodies
        self.store = store
        self.library = library
        self.logger = logger
    }

    /// Cancels a download, which removes what it has written. What comes later for its job waits for that.
    func cancel(_ download: Deferred<JSON, any Error>, of job: JobID, owner: UInt32) {
        let isDone = Promise<Void, Never>()
        cancelled.withLock { $0[job] = isDone.deferred }
        library.startWithFiles(of: owner) { [self] in
            download.cancel()
            cancelled.withLock { if $0[job] === isDone.deferred { $0[job] = nil } }
            isDone.succeed(())
        }
    }

    /// Removes the `.part`s that downloads of these links left or kept for a retry which will not come; none is running, but for
    /// the last of its end.
    func discardParts(
        of job: JobID, links: ClosedRange<Int>, owner: UInt32, _ done: @escaping @Sendable () -> Void
    ) {
        withPatience(done) { [self] in
            if let cancelled = cancelled.withLock({ $0[job] }) { await cancelled.get() }
            for (link, checkpoint) in (try? await store.checkpoints(of: job, links: links)) ?? [:] {
                await library.discard(checkpoint, of: job, owner: owner)
                // Where it cannot be dropped it is dropped with the job.
                store.save(checkpoint: nil, of: job, link: link) { _ in }
            }
        }
    }

    /// Removes the files of removed jobs.
    func cleanUp(_ removed: [RemovedJob], _ done: @escaping @Sendable () -> Void) {
        queue.async { [bodies] in
            for job in removed { bodies.remove(job.id, upTo: job.links) }
        }
        guard removed.contains(where: { !$0.checkpoints.isEmpty }) else { return done() }
        withPatience(done) { [self] in
            for job in removed {
                for checkpoint in job.checkpoints { await library.discard(checkpoint, of: job.id, owner: job.owner) }
            }
        }
    }

    /// Runs `body`, and calls `done` once it has ended or has taken too long: a file system may not answer.
    private func withPatience(_ done: @escaping @Sendable () -> Void, _ body: @escaping @Sendable () async -> Void) {
        let isDone = Atomic(false)
        let end = { @Sendable in
            if !isDone.exchange(true, ordering: .relaxed) { done() }
        }
        timers.asyncAfter(deadline: .now() + Self.patience, execute: end)
        // It ends by itself, whether anybody still waits for it or not.
        Task(executorPreference: library.executor) {
            await body()
            end()
        }
    }

    /// Removes the bodies of jobs that a daemon had removed when it was killed.
    func removeForgotten(upTo links: Int) {
        queue.async { [self] in
            let found = bodies.jobs().sorted()
            for start in stride(from: 0, to: found.count, by: 256) {
                let page = Array(found[start..<min(start + 256, found.count)])
                store.read(.jobs(page)) { [self] result in
                    guard case .success(.jobs(let jobs)) = result else { return }
                    let forgotten = Set(page).subtracting(jobs.map(\.id))
                    guard !forgotten.isEmpty else { return }
                    queue.async { [self] in
                        for job in forgotten { bodies.remove(job, upTo: links) }
                        logger.notice(
                            "Bodies of removed jobs were left over.", metadata: ["removed": "\(forgotten.count)"])
                    }
                }
            }
        }
    }
}
