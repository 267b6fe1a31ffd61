import JobModel
import NIOCore

/// One request of a source `url` or `json`, and how its response is received.
struct DocumentTransfer: Sendable {
    let spec: HTTPRequestSpec
    let body: Handover<[UInt8]>
    let transfer: Transfer

    func response() async throws(JobError) -> DocumentResponse {
        let (response, isNotModified) = try await open(accepting: "*/*")
        defer { response.close() }
        let body = try await transfer.keeping { (file) async throws(JobError) in
            try await response.receive(into: file, transfer.report)
        }
        return DocumentResponse(response: response, isNotModified: isNotModified, body: body)
    }

    func value(at pointer: JSONPointer) async throws(JobError) -> JSON {
        let (response, isNotModified) = try await open(accepting: "application/json, */*;q=0.5")
        defer { response.close() }
        // A 304 has no document to select from; null says that nothing has changed.
        if isNotModified { return .null }
        let file = BodyFile(transfer, inMemory: BodyFile.longestInMemory)
        try await response.receive(into: file, transfer.report)
        let (url, budget) = (response.url, transfer.settings.limits.documentValues)
        return try await transfer.shared.documents.value(of: file, transfer, transfer.control) {
            (bytes) throws(JobError) in try Self.value(at: pointer, in: bytes, from: url, within: budget)
        }
    }

    /// Sends the request; the caller closes the response.
    private func open(
        accepting types: String
    ) async throws(JobError) -> (response: IncomingResponse, isNotModified: Bool) {
        let rules = transfer.rules
        var request = OutgoingRequest(
            try rules.access.url(spec.url), method: spec.method, headers: spec.headers,
            body: try await outgoingBody(), coding: .decoded, accept: types, idleTimeout: spec.idleTimeout)
        if let tag = spec.ifNoneMatch { request.set("If-None-Match", tag) }
        if let time = spec.ifModifiedSince { request.set("If-Modified-Since", HTTPDate.text(time)) }
        let response = try await transfer.open(request)
        let isNotModified =
            response.status == 304
            && (request.headers.contains(name: "If-None-Match") || request.headers.contains(name: "If-Modified-Since"))
        guard isNotModified || response.isSuccess || spec.accept == .any else { throw await response.failure() }
        if !request.headers.contains(name: "Range"), let error = response.partError {
            response.close()
            throw error
        }
        return (response, isNotModified)
    }

    /// The body to send: a long one from a file, as a slow server would keep it in memory for long.
    private func outgoingBody() async throws(JobError) -> OutgoingRequest.Body? {
        let size = body.look { $0?.count ?? 0 }
        let file = try await BodyFile.moving({ [body] in body.take() ?? [] }, ofSize: size, for: "body", transfer)
        guard let file else { return body.take().map(OutgoingRequest.Body.bytes) }
        return .file(OutgoingFile(.body(file), size: Int64(size), transfer))
    }

    private static func value(
        at pointer: JSONPointer, in bytes: [UInt8], from url: RequestURL, within budget: Int
    ) throws(JobError) -> (value: JSON, cost: Int) {
        // JSON has no byte order mark, but some servers send one.
        let start = bytes.starts(with: [0xEF, 0xBB, 0xBF]) ? 3 : 0
        do throws(JSONSyntaxError) {
            let (value, cost) = try bytes.withUnsafeBufferPointer { (bytes) throws(JSONSyntaxError) in
                try JSONParser.parse(
                    UnsafeRawBufferPointer(UnsafeBufferPointer(rebasing: bytes[start...])), at: pointer, budget: budget,
                    boundsCombining: true)
            }
            if let value { return (value, cost) }
        } catch  where error.isTooLarge {
            throw JobError(
                .tooLarge,
                "The JSON of \(SourceMessage.quoted(url)) has too many values, \(error); select fewer of them.")
        } catch {
            throw JobError(.parse, "The body of \(SourceMessage.quoted(url)) is not JSON: \(error); check the URL.")
        }
        throw JobError(
            .select, "The JSON of \(SourceMessage.quoted(url)) has nothing at \"\(pointer)\"; check the pointer.")
    }
}

/// The complete response to a request for a document.
struct DocumentResponse: Sendable {
    let response: IncomingResponse
    let isNotModified: Bool
    let body: BodyFile

    var json: JSON {
        var result: JSONObject = [
            "status": response.status.json, "headers": .object(response.fields), "mediaType": mediaType?.json ?? .null,
            "size": body.size.json, "notModified": isNotModified.json,
        ]
        body.add(to: &result)
        return .object(result)
    }

    /// The media type without parameters, in lower case.
    var mediaType: String? {
        let type = response.field("Content-Type")?.utf8.prefix { $0 != UInt8(ascii: ";") }
        return type?.split { $0 <= 0x20 }.first.map { String(Substring($0)).lowercased() }
    }
}
