import DeferredKit
import Glibc
import JobModel
import NIOCore
import NIOHTTP1

/// One request and how its answer is received, for the sources `url` and `json`.
struct DocumentTransfer: Sendable {
    /// Without its body.
    let spec: HTTPRequestSpec
    let body: Handover<[UInt8]>
    let transport: HTTPTransport
    let policy: AccessPolicy
    let settings: SourceSettings
    let context: SourceContext
    let files: FileOperations
    let queue: FileQueue
    let documents: DocumentBudget
    let bodies: SpilledBodies
    let task: TransferTask

    /// Status, headers and body, as `make` has them.
    func response<Output: Sendable>(
        _ make: @escaping @Sendable (DocumentResponse) -> Output
    ) -> Deferred<Output, any Error> {
        task.start { handle async throws(JobError) in
            let (response, isNotModified) = try await open(accepting: "*/*", handle)
            defer { response.close() }
            let file = BodyFile(of: context, isNamed: true, files: files, queue: queue)
            return try await file.removingUnlessFinished { () async throws(JobError) in
                let body = try await receive(
                    response, in: file, beyond: settings.limits.inlineResult, upTo: context.roomForBody, handle)
                if case .spilled = body { try await file.sync() }
                return make(DocumentResponse(response, isNotModified: isNotModified, body: body))
            }
        }
    }

    /// The value at `pointer` in the JSON that the body is.
    func value(at pointer: JSONPointer) -> Deferred<JSON, any Error> {
        task.start { handle async throws(JobError) in
            let (response, isNotModified) = try await open(accepting: "application/json, */*;q=0.5", handle)
            defer { response.close() }
            // A 304 has no document to select from; null says that nothing has changed.
            if isNotModified { return .null }
            let file = BodyFile(of: context, files: files, queue: queue)
            let body = try await receive(response, in: file, beyond: Self.largestReceived, handle)
            return try await value(at: pointer, of: body, in: file, from: response.url, handle)
        }
    }

    /// Sends the request; the caller closes the response.
    private func open(
        accepting types: String, _ handle: TransferHandle
    ) async throws(JobError) -> (response: IncomingResponse, isNotModified: Bool) {
        let request = try request(accepting: types, try await body(handle))
        let response = try await transport.open(request, handle)
        let isNotModified =
            response.status == 304
            && (request.headers.contains(name: "If-None-Match") || request.headers.contains(name: "If-Modified-Since"))
        guard isNotModified || response.isSuccess || spec.accept == .any else {
            await response.discard()
            throw response.statusError
        }
        return (response, isNotModified)
    }

    /// What is sent: a long body from a file, as a slow server would else keep it in memory for long.
    private func body(_ handle: TransferHandle) async throws(JobError) -> OutgoingRequest.Body? {
        let size = body.look { $0?.count ?? 0 }
        guard size > Self.longestSent else { return body.take().map(OutgoingRequest.Body.bytes) }
        let room = try bodies.admit(Int64(size), of: context.owner, within: context.roomForBody)
        let file = try await BodyFile.writing(
            { [body] in body.take() ?? [] }, in: room, leaving: settings.downloads.minimumFree, for: context,
            files: files, queue: queue, handle.control)
        return .file(
            OutgoingFile(size: Int64(size), queue: queue) { (offset, buffer) throws(JobError) in
                try file.read(at: offset, into: buffer)
            })
    }

    private func request(accepting types: String, _ body: OutgoingRequest.Body?) throws(JobError) -> OutgoingRequest {
        var request = OutgoingRequest(
            try policy.url(spec.url), method: spec.method, headers: spec.headers,
            body: body, coding: .decoded, accept: types, userAgent: settings.http.userAgent)
        if let tag = spec.ifNoneMatch { request.set("If-None-Match", tag) }
        if let time = spec.ifModifiedSince { request.set("If-Modified-Since", HTTPDate.text(time)) }
        return request
    }

    /// The body in memory, or in `file` where it is longer than `threshold`; there it may have `room` bytes.
    private func receive(
        _ response: IncomingResponse, in file: BodyFile, beyond threshold: Int, upTo room: Int64 = .max,
        _ handle: TransferHandle
    ) async throws(JobError) -> ResponseBody {
        let limit = settings.limits.body
        let announced = spec.method == "HEAD" || response.status == 304 ? nil : response.contentLength
        if let announced, announced > limit { throw JobError(bodyOf: response.url, largerThan: limit) }
        let isEncoded = response.head.headers.contains(name: "Content-Encoding")
        var bytes: [UInt8] = []
        if let announced { bytes.reserveCapacity(min(Int(announced), threshold, Self.smallDocument)) }
        var size = 0
        while let blocks = try await response.next() {
            size += blocks.reduce(0) { $0 + $1.readableBytes }
            guard size <= limit else { throw JobError(bodyOf: response.url, largerThan: limit) }
            for block in blocks { bytes.append(contentsOf: block.readableBytesView) }
            if size > threshold {
                guard size <= room else {
                    throw JobError(
                        .tooLarge,
                        "The body of \(SourceMessage.quoted(response.url)) cannot be kept, as there is room for "
                            + "\(room) bytes more of your jobs; remove some that are over, then retry the job.")
                }
                try await file.write(bytes)
                bytes.removeAll(keepingCapacity: true)
            }
            handle.report(ProgressUpdate(completed: Int64(size), total: isEncoded ? nil : announced))
        }
        return size > threshold ? .spilled(size: size) : .whole(bytes)
    }

    /// The largest document that is parsed on the event loop; a larger one would block it too long.
    private static let smallDocument = 64 << 10
    /// The largest document that is received in memory; a larger one goes to a file, as a slow server would keep its
    /// room from others for long.
    private static let largestReceived = 256 << 10

    /// The longest body that is sent from memory.
    private static let longestSent = 64 << 10

    /// Parses the document, a larger one once there is room for it.
    private func value(
        at pointer: JSONPointer, of body: ResponseBody, in file: BodyFile, from url: RequestURL,
        _ handle: TransferHandle
    ) async throws(JobError) -> JSON {
        let text = DocumentText(url: url, pointer: pointer, budget: settings.limits.documentValues)
        return switch body {
        case .whole(let bytes) where bytes.count <= Self.smallDocument: try text.value(in: bytes).value
        case .whole(let bytes):
            try await documents.value(of: text, size: bytes.count, for: context, on: queue, handle.control) {
                () throws(JobError) in bytes
            }
        case .spilled(let size):
            try await documents.value(of: text, size: size, for: context, on: queue, handle.control) {
                () throws(JobError) in try file.read(size)
            }
        }
    }
}

/// A document that should be JSON, and which value in it is wanted.
private struct DocumentText: MeasuredText {
    let url: RequestURL
    let pointer: JSONPointer
    /// What the value may take in memory.
    let budget: Int

    /// What the value will take.
    func cost(of bytes: [UInt8]) throws(JobError) -> Int {
        try parsed(bytes) { (raw) throws(JSONSyntaxError) in
            try JSONParser.cost(of: raw, at: pointer, budget: budget)
        }
    }

    /// The value, and what it takes.
    func value(in bytes: [UInt8]) throws(JobError) -> (value: JSON, cost: Int) {
        let (value, cost) = try parsed(bytes) { (raw) throws(JSONSyntaxError) in
            try JSONParser.parse(raw, at: pointer, budget: budget)
        }
        guard let value else {
            throw JobError(
                .select, "The JSON of \(SourceMessage.quoted(url)) has nothing at \"\(pointer)\"; check the pointer.")
        }
        return (value, cost)
    }

    private func parsed<Value>(
        _ bytes: [UInt8], _ body: (UnsafeRawBufferPointer) throws(JSONSyntaxError) -> Value
    ) throws(JobError) -> Value {
        // A byte order mark does not belong in JSON, but some servers send one.
        let start = bytes.starts(with: [0xEF, 0xBB, 0xBF]) ? 3 : 0
        let result = bytes.withUnsafeBytes { raw in
            Result { () throws(JSONSyntaxError) in try body(UnsafeRawBufferPointer(rebasing: raw[start...])) }
        }
        do throws(JSONSyntaxError) {
            return try result.get()
        } catch {
            guard !error.isTooLarge else {
                throw JobError(
                    .tooLarge,
                    "The JSON of \(SourceMessage.quoted(url)) has too many values, \(error); select fewer of them.")
            }
            throw JobError(.parse, "The body of \(SourceMessage.quoted(url)) is no JSON: \(error); check the URL.")
        }
    }
}
