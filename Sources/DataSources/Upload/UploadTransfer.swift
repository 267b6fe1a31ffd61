import DeferredKit
import JobModel
import NIOCore

/// One attempt at an upload, from its path to its result.
struct UploadTransfer: Sendable {
    let spec: UploadSpec
    let context: SourceContext
    let services: DownloadServices
    let handle: TransferHandle

    func run() async throws(JobError) -> JSON {
        let (file, wanted) = (try await opened(), spec.sha256)
        let body = OutgoingFile(
            size: file.size, queue: services.queue, report: handle.report,
            read: { (offset, buffer) throws(JobError) in try file.read(at: offset, into: buffer) },
            check: { (digest) throws(JobError) in
                try file.checkUnchanged()
                try file.check(digest, against: wanted)
            })
        // Of an empty one there is no last byte to be held back.
        if let digest = body.digest { try file.check(digest, against: wanted) }
        let request = OutgoingRequest(
            try services.policy.url(spec.url), method: spec.method.rawValue, headers: spec.headers, body: .file(body),
            coding: .asSent, userAgent: services.userAgent)
        let response = try await services.transport.open(request, handle)
        defer { response.close() }
        guard response.isSuccess else {
            await response.discard()
            throw response.statusError
        }
        return [
            "status": JSON(response.status), "headers": .object(response.fields), "size": JSON(Int(body.size)),
            "sha256": .string(try await digest(of: body, afterAll: response)), "attempts": JSON(context.attempt),
            "url": .string(response.url.description),
        ]
    }

    private func opened() async throws(JobError) -> UploadFile {
        let path = try services.directories.path(spec.path, owner: context.owner, groups: context.groups)
        let (queue, files) = (services.queue, services.files)
        return try await handle.control.wait { promise in
            queue.start {
                promise.resolve(Result { () throws(JobError) in try UploadFile(path, files: files, queue: queue) })
            }
        }
    }

    /// The bytes of an answer that are read while the file is still being sent.
    private static let longestAnswer = 64 << 10

    /// The file's digest, once the server has it all. A server that ends its answer before does not have it, whatever it says.
    private func digest(of body: OutgoingFile, afterAll response: IncomingResponse) async throws(JobError) -> String {
        var received = 0
        while body.digest == nil, received < Self.longestAnswer, let blocks = try await response.next() {
            received += blocks.reduce(0) { $0 + $1.readableBytes }
        }
        guard let digest = body.digest else {
            throw JobError(
                .network,
                "\(SourceMessage.quoted(response.url)) was answered with \(response.status) before all of the file was sent; try again.",
                retryable: true)
        }
        await response.discard()
        return digest
    }
}
