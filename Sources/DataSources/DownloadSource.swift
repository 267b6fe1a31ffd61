import DeferredKit
import JobModel
import Logging

/// The source `download`: a file that is fetched, checked and put in its place.
struct DownloadSource: DataSource {
    let spec: DownloadSpec
    let context: SourceContext
    let services: DownloadServices
    let task: TransferTask

    func start() -> Deferred<JSON, any Error> {
        task.start { handle async throws(JobError) in
            try await DownloadAttempt(spec: spec, context: context, services: services, handle: handle).run()
        }
    }
}

/// What all downloads share.
struct DownloadServices: Sendable {
    let transport: HTTPTransport
    let policy: AccessPolicy
    let folders: DownloadFolders
    let registry: TargetRegistry
    let files: FileOperations
    let queue: FileQueue
    let userAgent: String
    let logger: Logger
}
