import DeferredKit
import Foundation
import JobModel
public import Logging
import NIOCore
import NIOPosix
import Synchronization

/// Makes the connections and writes the files of sources, within its ``SourceOptions``.
///
/// Most programs need only ``shared``. A session with its own options lives as long as somebody refers to it or one of
/// its sources runs; then its connections and threads end by themselves. ``shutdown()`` ends it at once.
///
/// All sessions run on the event loops that the process has anyway (NIO's singleton). A session has a pool of connections,
/// and eight threads that do what blocks.
public final class SourceSession: Sendable {
    /// A session with the default options, for as long as the process runs.
    public static let shared: SourceSession = {
        do {
            return try SourceSession()
        } catch {
            preconditionFailure("The default options are valid: \(error)")
        }
    }()

    let library: SourceLibrary
    let records: SessionRecords
    /// Tells transfers apart, also from those of earlier processes that the records know.
    private let lastTransfer = Atomic(Int64.random(in: 1...1 << 52))

    /// A session of one's own.
    ///
    /// - Parameters:
    ///   - options: What it may do.
    ///   - logger: Where warnings go; by default nowhere.
    /// - Throws: A ``SourceError`` with the code `invalid` where an option is not valid.
    public convenience init(_ options: SourceOptions = SourceOptions(), logger: Logger? = nil) throws(SourceError) {
        try self.init(options, logger: logger, files: .real)
    }

    init(
        _ options: SourceOptions, logger: Logger? = nil, timers: (any EventLoop)? = nil, files: FileOperations
    ) throws(SourceError) {
        let settings = options.settings
        do throws(JobError) {
            try settings.check()
            library = try SourceLibrary(
                settings: settings, group: MultiThreadedEventLoopGroup.singleton, timers: timers,
                logger: logger ?? Logger(label: "DataSources") { _ in SwiftLogNoOpLogHandler() }, files: files)
        } catch {
            throw SourceError(error)
        }
        records = SessionRecords(directory: options.downloads.records)
    }

    deinit { library.end() }

    /// Breaks off what still runs and closes all connections; sources that are started later fail.
    ///
    /// Transfers fail with the code `cancelled`; downloads have kept what a later start goes on with. Returns once all have
    /// ended, but for those that a file system has held up for seconds.
    public func shutdown() async {
        await library.shutdown()
    }

    /// For whom a transfer runs, and what it keeps: here nobody but this process, and the session's records of `path`.
    func context(
        timeout: Duration?, checkpoint: JSON? = nil, resumes: Bool = true, connections: Int = 1, path: String = ""
    ) -> SourceContext {
        let records = records
        let directory = FileManager.default.temporaryDirectory.path
        var context = SourceContext(
            job: lastTransfer.add(1, ordering: .relaxed).newValue, link: 0, attempt: 1, owner: 0,
            bodyPath: "\(directory)/DataSources-\(UUID().uuidString)",
            saveCheckpoint: { checkpoint in
                guard resumes else { return .succeeded(()) }
                return records.change(path) { $0.checkpoint = checkpoint }
            },
            lastDownload: { path in records.entry(path).map(\.record) },
            recordDownload: { path, record in records.change(path) { $0.record = record } })
        context.timeout = timeout?.inSeconds
        context.checkpoint = checkpoint
        context.mayResume = resumes
        context.connections = connections
        return context
    }

    /// The directory in an absolute form that a relative one means now.
    static func absolute(_ path: String) -> String {
        path.hasPrefix("/") ? path : FileManager.default.currentDirectoryPath + "/" + path
    }
}

extension Deferred where Failure == any Error {
    /// The same with errors for those who use the library, keeping `session` until it is resolved.
    func translated(keeping session: SourceSession) -> Deferred {
        fail { error in
            withExtendedLifetime(session) {}
            throw SourceError.translated(error)
        }
    }
}
