import DataSources
import Dispatch
import JobModel
import JobStore
import Logging

/// Removes the files of removed jobs, on a queue of its own: bodies, and the `.part` files of unfinished downloads.
final class FileCleaner: Sendable {
    let bodies: BodyDirectory
    private let queue = DispatchQueue(label: "deferd.bodies", qos: .utility)
    private let store: any JobStore
    private let library: SourceLibrary
    private let logger: Logger

    init(bodies: BodyDirectory, store: any JobStore, library: SourceLibrary, logger: Logger) {
        self.bodies = bodies
        self.store = store
        self.library = library
        self.logger = logger
    }

    /// Removes the `.part` that a download kept for a retry which will not come; the download is not running.
    func discardPart(of job: JobID, link: Int, owner: UInt32, _ done: @escaping @Sendable () -> Void) {
        // Owned by its caller, who waits for `done`.
        Task(executorPreference: library.executor) { [self] in
            if let checkpoint = try? await store.checkpoint(of: job, link: link) {
                await library.discard(checkpoint, of: job, owner: owner)
            }
            done()
        }
    }

    /// Removes the files of removed jobs.
    func cleanUp(_ removed: [RemovedJob], _ done: @escaping @Sendable () -> Void) {
        queue.async { [bodies] in
            for job in removed { bodies.remove(job.id, upTo: job.links) }
        }
        guard removed.contains(where: { !$0.checkpoints.isEmpty }) else { return done() }
        // Owned by its caller, who waits for `done`.
        Task(executorPreference: library.executor) { [self] in
            for job in removed {
                for checkpoint in job.checkpoints { await library.discard(checkpoint, of: job.id, owner: job.owner) }
            }
            done()
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
