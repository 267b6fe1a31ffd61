import DataSources
import DeferredKit
import DequeModule
import JobModel
import Logging
import Synchronization

/// Runs the program of `hooks.finished` for each end of a job with `notify`: four at most, users in turn.
///
/// Hooks are not jobs: nothing is stored of them, and a hook that fails is only logged.
final class Hooks: Sendable {
    private static let mostAtWork = 4
    private static let mostWaiting = 1000
    /// Seconds until a program is ended.
    private static let timeout = 60.0

    private struct State {
        var waiting: [UInt32: Deque<JobID>] = [:]
        /// The users with waiting ends; the first is next.
        var turns: Deque<UInt32> = []
        var atWork = 0

        /// Adds an end; returns false if its user has too many.
        mutating func add(_ job: JobID, of owner: UInt32) -> Bool {
            let count = waiting[owner]?.count ?? 0
            guard count < Hooks.mostWaiting else { return false }
            if count == 0 { turns.append(owner) }
            waiting[owner, default: []].append(job)
            return true
        }

        mutating func next() -> (job: JobID, owner: UInt32)? {
            guard atWork < Hooks.mostAtWork, let owner = turns.popFirst(), let job = waiting[owner]?.popFirst() else {
                return nil
            }
            if waiting[owner]?.isEmpty == false { turns.append(owner) } else { waiting[owner] = nil }
            atWork += 1
            return (job, owner)
        }
    }

    private let state = Mutex(State())

    /// Notes the end of a job.
    func tell(_ job: JobID, of owner: UInt32, _ engine: Engine) {
        guard engine.settings.finishedHook != nil else { return }
        guard state.withLock({ $0.add(job, of: owner) }) else {
            engine.logger.warning(
                "Too many ends wait for hooks.finished, so this one is not told.",
                metadata: ["job": "\(job)", "uid": "\(owner)"])
            return
        }
        startNext(engine)
    }

    private func startNext(_ engine: Engine) {
        guard let (job, owner) = state.withLock({ $0.next() }) else { return }
        engine.library.threads(for: owner).start { [self] in
            guard let hook = engine.settings.finishedHook, let stored = try? engine.reader.job(job) else {
                return ended(engine)
            }
            let view = JobView(stored.row, document: stored.document, template: stored.template)
            run(hook, view.text(.whole, within: 1 << 20), job, owner, engine)
        }
    }

    private func run(_ hook: ProgramSpec.Subject, _ text: [UInt8], _ job: JobID, _ owner: UInt32, _ engine: Engine) {
        var context = SourceContext(
            job: job, link: 0, attempt: 1, owner: owner, bodyPath: engine.blobs.path(of: engine.blobs.newFile()),
            saveCheckpoint: { _ in .succeeded(()) }, lastDownload: { _ in .succeeded(nil) },
            recordDownload: { _, _ in .succeeded(()) })
        context.roomForBody = 0
        context.timeout = Self.timeout
        let log = engine.blobs.newFile()
        context.logPath = engine.blobs.path(of: log)
        let program = ProgramSpec(hook, input: .bytes(text + [UInt8(ascii: "\n")]))
        engine.library.start(.program(program), context).upon { [self] outcome in
            if case .failure(let error) = outcome {
                engine.logger.warning(
                    "The program of hooks.finished failed.", metadata: ["job": "\(job)", "error": "\(error)"])
            }
            engine.library.threads(for: owner).start { engine.blobs.remove([log]) }
            ended(engine)
        }
    }

    private func ended(_ engine: Engine) {
        state.withLock { $0.atWork -= 1 }
        startNext(engine)
    }
}
