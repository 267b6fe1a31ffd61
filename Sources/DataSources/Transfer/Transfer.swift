import DeferredKit
import JobModel
import Logging
import NIOCore

/// One running transfer: the job it runs for, the services it uses, and how it is stopped.
///
/// A class, so that asynchronous steps share it instead of copying it.
final class Transfer: Sendable {
    let context: SourceContext
    let rules: SourceRules
    let shared: SharedServices
    let control = TransferControl()
    /// The event loop on which its steps, its connections and its responses run.
    let loop: any EventLoop
    /// The event loop whose clock measures its timeouts.
    let clock: any EventLoop
    let report: @Sendable (ProgressUpdate) -> Void

    init(
        _ context: SourceContext, _ rules: SourceRules, _ shared: SharedServices, loop: any EventLoop,
        clock: any EventLoop, report: @escaping @Sendable (ProgressUpdate) -> Void
    ) {
        self.context = context
        self.rules = rules
        self.shared = shared
        self.loop = loop
        self.clock = clock
        self.report = report
    }

    var owner: UInt32 { context.owner }
    var settings: SourceSettings { rules.settings }
    var files: FileOperations { shared.files }
    var logger: Logger { shared.logger }
    /// The threads for files of the job's owner.
    var userFiles: FileQueue { shared.userFiles.of(owner) }
    /// The threads for the daemon's own files, on behalf of the job's owner.
    var ownFiles: FileQueue { shared.ownFiles.of(owner) }

    /// A deadline that fails the transfer with `error`.
    func limit(_ deadline: NIODeadline, _ error: JobError) -> TransferControl.Limit {
        TransferControl.Limit(deadline: deadline, clock: clock, error: error)
    }

    /// Waits for `pause`.
    func sleep(for pause: TimeAmount) async throws(JobError) {
        try await control.sleep(until: clock.now + pause, by: clock)
    }
}
