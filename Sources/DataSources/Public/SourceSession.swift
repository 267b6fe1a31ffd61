import DeferredKit
import FoundationEssentials
import JobModel
public import Logging
import NIOCore
import NIOPosix
import Synchronization

/// Makes the connections and writes the files of sources, within its ``SourceOptions``.
///
/// Most programs need only ``shared``. Another session lives as long as something refers to it or one of its sources
/// runs; then its connections and threads end. ``shutdown()`` ends it at once.
///
/// All sessions use the process's event loops (NIO's singleton). Each has its own connections and threads.
public final class SourceSession: Sendable {
    /// The session with the default options, which lives as long as the process.
    public static let shared: SourceSession = {
        do {
            return try SourceSession()
        } catch {
            preconditionFailure("The default options are valid: \(error)")
        }
    }()

    let library: SourceLibrary
    let records: SessionRecords
    /// Distinguishes transfers, also from those of earlier processes in the records.
    private let lastTransfer = Atomic(Int64.random(in: 1...1 << 52))

    /// Makes a session.
    ///
    /// - Parameters:
    ///   - options: What its sources may do.
    ///   - logger: The destination of warnings; by default, they are dropped.
    /// - Throws: A ``SourceError`` with the code `invalid` if an option is not valid.
    public init(_ options: SourceOptions = SourceOptions(), logger: Logger? = nil) throws(SourceError) {
        let settings = options.settings
        do throws(JobError) {
            try settings.check()
            library = try SourceLibrary(
                settings: settings, group: MultiThreadedEventLoopGroup.singleton,
                logger: logger ?? Logger(label: "DataSources") { _ in SwiftLogNoOpLogHandler() })
        } catch {
            throw SourceError(error)
        }
        records = SessionRecords(directory: options.downloads.records)
    }

    deinit { library.end() }

    /// Stops all transfers and closes all connections; sources that start later fail.
    ///
    /// Transfers fail with the code `cancelled`; downloads keep the data that a later start resumes. Returns when all
    /// have ended, except for those that a file system blocks for seconds.
    public func shutdown() async { await library.shutdown() }

    /// The context of a transfer, which keeps its records under `path`.
    func context(timeout: Duration?, path: String = "", resumes: Bool = true) -> SourceContext {
        let records = records
        let directory = FileManager.default.temporaryDirectory.path
        var context = SourceContext(
            job: lastTransfer.add(1, ordering: .relaxed).newValue, link: 0, attempt: 1, owner: 0,
            bodyPath: "\(directory)/DataSources-\(UUID().uuidString)")
        if resumes {
            context.saveCheckpoint = { checkpoint in records.change(path) { $0["checkpoint"] = checkpoint } }
        }
        context.lastDownload = { path in records.entry(path).map { $0["record"] } }
        context.recordDownload = { path, record in records.change(path) { $0["record"] = record } }
        context.timeout = timeout?.inSeconds
        context.mayResume = resumes
        return context
    }

    /// The absolute form of a directory.
    static func absolute(_ path: String) -> String {
        path.hasPrefix("/") ? path : FileManager.default.currentDirectoryPath + "/" + path
    }
}

extension Deferred where Failure == any Error {
    /// The same with public errors; keeps `session` until it is resolved.
    func translated(keeping session: SourceSession) -> Deferred {
        fail { error in
            withExtendedLifetime(session) {}
            throw (error as? JobError).map { SourceError($0) } ?? error
        }
    }
}
