import JobModel

extension Transfer {
    /// Uploads a file; returns the result of the source.
    func upload(_ spec: UploadSpec) async throws(JobError) -> JSON {
        let file = try await opened(spec)
        let frame = spec.form.map { MultipartFrame($0, filename: $0.filename ?? file.name) }
        let body = OutgoingFile(.upload(file), size: file.status.size, in: frame, checksum: spec.checksum, self)
        // An empty file has no last byte to hold back.
        if let digest = body.digest { try body.check(digest) }
        var request = OutgoingRequest(
            try rules.access.url(spec.url), method: spec.method.rawValue, headers: spec.headers,
            body: .file(body), coding: .asSent, idleTimeout: spec.idleTimeout)
        if let frame { request.set("Content-Type", frame.contentType) }
        let response = try await open(request)
        defer { response.close() }
        guard response.isSuccess else { throw await response.failure() }
        let answer = try await keeping { (file) async throws(JobError) in
            try await response.receive(into: file)
        }
        guard let digest = body.digest else {
            throw JobError(
                .network,
                "\(SourceMessage.quoted(response.url)) answered with \(response.status) before it had the whole file; try again.",
                retryable: true)
        }
        var result: JSONObject = [
            "status": JSON(response.status), "headers": .object(response.fields),
            "size": JSON(Int(file.status.size)), "sha256": .string(digest.sha256),
            "attempts": JSON(context.attempt), "url": .string(response.url.description),
        ]
        answer.add(to: &result)
        return .object(result)
    }

    private func opened(_ spec: UploadSpec) async throws(JobError) -> ReadableFile {
        let path = try rules.directories.path(spec.path, owner: owner, groups: context.groups)
        return try await control.run(on: userFiles) { [files, userFiles] () throws(JobError) in
            let directory = try TargetDirectory.opened(path, for: .execute, files)
            if let file = try ReadableFile(path.name, in: directory, path, files, userFiles) { return file }
            throw JobError(.invalid, "\"\(path.absolute())\" is not a regular file; give the path of one.")
        }
    }
}
