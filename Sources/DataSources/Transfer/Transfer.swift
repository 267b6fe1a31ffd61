import DeferredKit
import JobModel
import NIOCore
import SystemPackage

/// One running transfer: the job it runs for, the services it uses, and how it is stopped.
///
/// A class, so that asynchronous steps share it instead of copying it.
final class Transfer: Sendable {
    let context: SourceContext
    let rules: SourceRules
    let shared: SharedServices
    let control: TransferControl
    /// The event loop on which its steps, its connections and its responses run.
    let loop: any EventLoop
    let report: @Sendable (ProgressUpdate) -> Void

    init(
        _ context: SourceContext, _ rules: SourceRules, _ shared: SharedServices, loop: any EventLoop,
        report: @escaping @Sendable (ProgressUpdate) -> Void
    ) {
        self.context = context
        self.rules = rules
        self.shared = shared
        control = TransferControl(shared.timers ?? loop)
        self.loop = loop
        self.report = report
    }

    var clock: any EventLoop { control.clock }
    var owner: UInt32 { context.owner }
    var settings: SourceSettings { rules.settings }
    var files: FileOperations { shared.files }
    var userFiles: FileQueue { shared.userFiles.of(owner) }
    /// The threads for the daemon's own files, on behalf of the job's owner.
    var ownFiles: FileQueue { shared.ownFiles.of(owner) }

    /// The bytes that are hashed at a time, between looks whether the transfer was stopped.
    private static let block: Int64 = 2 << 20

    /// Adds the bytes of a file in `range`, which must exist, to `digest`.
    func hash(
        _ descriptor: Int32, _ path: String, _ range: Range<Int64>, into digest: FileDigest
    ) async throws(JobError) {
        var position = range.lowerBound
        while position < range.upperBound {
            try control.check()
            let (offset, count) = (position, Int(min(Self.block, range.upperBound - position)))
            try await userFiles.run { [files] () throws(JobError) in
                try JobError.naming(path, "read") { () throws(Errno) in
                    let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: count, alignment: 4096)
                    defer { buffer.deallocate() }
                    // The file was longer a moment ago, so another process is truncating it.
                    guard try files.fill(buffer, from: descriptor, at: offset) == count else { throw Errno.ioError }
                    digest.update(UnsafeRawBufferPointer(buffer))
                }
            }
            position += Int64(count)
        }
    }
}
