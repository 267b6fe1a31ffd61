import JobModel
import SystemPackage

/// One attempt at an upload, from its path to its result.
struct UploadTransfer: Sendable {
    let spec: UploadSpec
    let transfer: Transfer

    func run() async throws(JobError) -> JSON {
        let (file, rules) = (try await opened(), transfer.rules)
        let frame = spec.form.map { MultipartFrame($0, filename: $0.filename ?? file.name) }
        let body = OutgoingFile(.upload(file), size: file.status.size, in: frame, checksum: spec.checksum, transfer)
        // An empty file has no last byte to hold back.
        if let digest = body.digest { try body.check(digest) }
        var request = OutgoingRequest(
            try rules.access.url(spec.url), method: spec.method.rawValue, headers: spec.headers,
            body: .file(body), coding: .asSent, idleTimeout: spec.idleTimeout)
        if let frame { request.set("Content-Type", frame.contentType) }
        let response = try await rules.transport.open(request, transfer)
        defer { response.close() }
        guard response.isSuccess else { throw await response.failure() }
        let answer = try await transfer.keptBody(of: response)
        guard let digest = body.digest else {
            throw JobError(
                .network,
                "\(SourceMessage.quoted(response.url)) answered with \(response.status) before it had the whole file; try again.",
                retryable: true)
        }
        var result: JSONObject = [
            "status": JSON(response.status), "headers": .object(response.fields),
            "size": JSON(Int(file.status.size)), "sha256": .string(digest.sha256),
            "attempts": JSON(transfer.context.attempt), "url": .string(response.url.description),
        ]
        answer.add(to: &result)
        return .object(result)
    }

    private func opened() async throws(JobError) -> ReadableFile {
        let context = transfer.context
        let path = try transfer.rules.directories.path(spec.path, owner: context.owner, groups: context.groups)
        let (queue, files) = (transfer.userFiles, transfer.files)
        return try await transfer.control.run(on: queue) { () throws(JobError) in
            let directory = try TargetDirectory.opened(path, for: .execute, files)
            if let file = try ReadableFile(path.name, in: directory, path, files, queue) { return file }
            throw JobError(.invalid, "\"\(path.absolute())\" is not a regular file; give the path of one.")
        }
    }
}
