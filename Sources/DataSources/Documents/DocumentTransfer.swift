import DeferredKit
import JobModel
import NIOCore
import NIOHTTP1

/// One request of a source `url` or `json`, and how its response is received.
struct DocumentTransfer: Sendable {
    /// The request without its body.
    let spec: HTTPRequestSpec
    let body: Handover<[UInt8]>
    let transfer: Transfer

    /// The largest document that is parsed on the event loop; a larger one would block it for too long.
    private static let smallDocument = 64 << 10
    /// The largest document that is received in memory; a slow server would keep a larger one there for long.
    private static let largestReceived = 256 << 10
    /// The longest body that is sent from memory.
    private static let longestSent = 64 << 10

    /// Receives status, headers and body.
    func response() async throws(JobError) -> DocumentResponse {
        let (response, isNotModified) = try await open(accepting: "*/*")
        defer { response.close() }
        let file = BodyFile(transfer, isNamed: true)
        do throws(JobError) {
            let body = try await receive(
                response, in: file, beyond: transfer.settings.limits.inlineResult, upTo: transfer.context.roomForBody)
            if case .spilled(let size) = body {
                try await file.sync()
                guard !Task.isCancelled else { throw TransferControl.cancelled }
                transfer.context.keptBody(Int64(size))
            }
            return DocumentResponse(response: response, isNotModified: isNotModified, body: body)
        } catch {
            await transfer.ownFiles.run { file.remove() }
            throw error
        }
    }

    /// Receives JSON, and returns the value at `pointer`.
    func value(at pointer: JSONPointer) async throws(JobError) -> JSON {
        let (response, isNotModified) = try await open(accepting: "application/json, */*;q=0.5")
        defer { response.close() }
        // A 304 has no document to select from; null says that nothing has changed.
        if isNotModified { return .null }
        let file = BodyFile(transfer)
        let body = try await receive(response, in: file, beyond: Self.largestReceived)
        let (url, budget) = (response.url, transfer.settings.limits.documentValues)
        if case .whole(let bytes) = body, bytes.count <= Self.smallDocument {
            return try Self.value(at: pointer, in: bytes, from: url, within: budget).value
        }
        return try await transfer.shared.documents.value(ofSize: body.size, transfer, transfer.control) {
            () throws(JobError) in
            let bytes: [UInt8]
            switch body {
            case .whole(let received): bytes = received
            case .spilled(let size): bytes = try file.read(size)
            }
            return try Self.value(at: pointer, in: bytes, from: url, within: budget)
        }
    }

    /// Sends the request; the caller closes the response.
    private func open(
        accepting types: String
    ) async throws(JobError) -> (response: IncomingResponse, isNotModified: Bool) {
        let rules = transfer.rules
        var request = OutgoingRequest(
            try rules.policy.access.url(spec.url), method: spec.method, headers: spec.headers,
            body: try await outgoingBody(), coding: .decoded, accept: types, userAgent: rules.settings.http.userAgent)
        if let tag = spec.ifNoneMatch { request.set("If-None-Match", tag) }
        if let time = spec.ifModifiedSince { request.set("If-Modified-Since", HTTPDate.text(time)) }
        let response = try await rules.transport.open(request, transfer)
        let isNotModified =
            response.status == 304
            && (request.headers.contains(name: "If-None-Match") || request.headers.contains(name: "If-Modified-Since"))
        guard isNotModified || response.isSuccess || spec.accept == .any else {
            await response.discard()
            throw response.statusError
        }
        return (response, isNotModified)
    }

    /// The body to send: a long one from a file, as a slow server would keep it in memory for long.
    private func outgoingBody() async throws(JobError) -> OutgoingRequest.Body? {
        let size = body.look { $0?.count ?? 0 }
        guard size > Self.longestSent else { return body.take().map(OutgoingRequest.Body.bytes) }
        let file = try await BodyFile.moving({ [body] in body.take() ?? [] }, ofSize: size, for: "body", transfer)
        return .file(
            OutgoingFile(size: Int64(size), queue: transfer.ownFiles) { (offset, buffer) throws(JobError) in
                try file.read(at: offset, into: buffer)
            })
    }

    /// Receives the body in memory, or in `file` if it is longer than `threshold`; there it may have `room` bytes.
    private func receive(
        _ response: IncomingResponse, in file: BodyFile, beyond threshold: Int, upTo room: Int64 = .max
    ) async throws(JobError) -> ResponseBody {
        let limit = transfer.settings.limits.body
        let announced = spec.method == "HEAD" || response.status == 304 ? nil : response.contentLength
        if let announced, announced > limit { throw JobError(bodyOf: response.url, largerThan: limit) }
        let isEncoded = response.head.headers.contains(name: "Content-Encoding")
        var bytes: [UInt8] = []
        if let announced { bytes.reserveCapacity(min(Int(announced), threshold, Self.smallDocument)) }
        var size = 0
        while let blocks = try await response.next() {
            size += blocks.byteCount
            guard size <= limit else { throw JobError(bodyOf: response.url, largerThan: limit) }
            for block in blocks { bytes.append(contentsOf: block.readableBytesView) }
            if size > threshold {
                guard size <= room else {
                    throw JobError(
                        .tooLarge,
                        "The body of \(SourceMessage.quoted(response.url)) cannot be kept: your jobs have room for "
                            + "\(room) more bytes; remove finished jobs, then retry the job.")
                }
                try await file.write(bytes)
                bytes.removeAll(keepingCapacity: true)
            }
            transfer.report(ProgressUpdate(completed: Int64(size), total: isEncoded ? nil : announced))
        }
        return size > threshold ? .spilled(size: size) : .whole(bytes)
    }

    private static func value(
        at pointer: JSONPointer, in bytes: [UInt8], from url: RequestURL, within budget: Int
    ) throws(JobError) -> (value: JSON, cost: Int) {
        // JSON has no byte order mark, but some servers send one.
        let start = bytes.starts(with: [0xEF, 0xBB, 0xBF]) ? 3 : 0
        do throws(JSONSyntaxError) {
            let (value, cost) = try bytes.withUnsafeBufferPointer { (bytes) throws(JSONSyntaxError) in
                try JSONParser.parse(
                    UnsafeRawBufferPointer(UnsafeBufferPointer(rebasing: bytes[start...])), at: pointer, budget: budget)
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
