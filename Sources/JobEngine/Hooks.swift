import DataSources
import DeferredKit
import JobModel
import Logging
import Synchronization

/// Runs the program of `hooks.finished` for each end of a job with `notify`: four at most, users in turn.
///
/// Hooks are not jobs: nothing is stored of them, and a hook that fails is only logged.
final class Hooks: Sendable {
    private static let mostWaiting = 1000
    /// The most bytes of a job object. With its newline, a longer one would be an input that takes space on the disk.
    private static let longestObject = 65_535
    /// Seconds until a program is ended.
    private static let timeout = 60.0

    private let jobs = Mutex(TurnQueue<JobID>(perUser: 4, total: 4))

    func tell(_ job: JobID, of owner: UInt32, _ engine: Engine) {
        guard engine.settings.finishedHook != nil else { return }
        let isWaiting = jobs.withLock { jobs in
            guard jobs.count(of: owner) < Self.mostWaiting else { return false }
            jobs.append(job, for: owner)
            return true
        }
        guard isWaiting else {
            return engine.logger.warning(
                "Too many ends wait for hooks.finished, so this one is not told.",
                metadata: ["job": "\(job)", "uid": "\(owner)"])
        }
        // Owned by its place in the queue, it ends with the last program that waits; each has a timeout.
        Task(executorPreference: engine.library.executor) { [self] in
            while let (owner, job) = jobs.withLock({ $0.next() }) {
                do { try await run(job, owner, engine) } catch {
                    let reason = (error as? JobError)?.message ?? "\(error)"
                    engine.logger.warning(
                        "The program of hooks.finished failed.", metadata: ["job": "\(job)", "error": "\(reason)"])
                }
                jobs.withLock { $0.finish(owner) }
            }
        }
    }

    private func run(_ job: JobID, _ owner: UInt32, _ engine: Engine) async throws {
        let text = await engine.blocking(for: owner) { () -> [UInt8]? in
            guard let stored = try? engine.reader.job(job) else { return nil }
            let view = JobView(stored.row, document: stored.document, template: stored.template)
            return view.text(.whole, within: Self.longestObject) + [UInt8(ascii: "\n")]
        }
        guard let hook = engine.settings.finishedHook, let text else { return }
        var context = SourceContext(
            job: job, link: 0, attempt: 1, owner: owner, bodyPath: engine.blobs.path(of: engine.blobs.newFile()))
        context.roomForBody = 0
        context.timeout = Self.timeout
        let log = engine.blobs.newFile()
        context.logPath = engine.blobs.path(of: log)
        defer { engine.blobs.remove([log]) }
        _ = try await engine.library.start(.program(ProgramSpec(hook, input: .bytes(text))), context).get()
    }
}
