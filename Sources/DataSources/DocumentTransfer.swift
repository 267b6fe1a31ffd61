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
    let rules: SourceRules
    let shared: SharedServices
    let context: SourceContext
    let task: TransferTask

    private var settings: SourceSettings { rules.settings }
    private var queue: FileQueue { shared.stateQueue.of(context.owner) }

    /// Status, headers and body, as `make` has them.
    func response<Output: Sendable>(
        _ make: @escaping @Sendable (DocumentResponse) -> Output
    ) -> Deferred<Output, any Error> {
        task.start { handle async throws(JobError) in
            let (response, isNotModified) = try await open(accepting: "*/*", handle)
            defer { response.close() }
            let file = BodyFile(of: context, isNamed: true, files: shared.files, queue: queue)
            return try await file.removingUnlessFinished { () async throws(JobError) in
                let body = try await receive(
                    response, in: file, beyond: settings.limits.inlineResult, upTo: context.roomForBody, handle)
                if case .spilled(let size) = body {
                    try await file.sync()
                    context.keptBody(Int64(size))
                }
                return make(DocumentResponse(response: response, isNotModified: isNotModified, body: body))
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
            let file = BodyFile(of: context, files: shared.files, queue: queue)
            let body = try await receive(response, in: file, beyond: Self.largestReceived, handle)
            return try await value(at: pointer, of: body, in: file, from: response.url, handle)
        }
    }

    /// Sends the request; the caller closes the response.
    private func open(
        accepting types: String, _ handle: TransferHandle
    ) async throws(JobError) -> (response: IncomingResponse, isNotModified: Bool) {
        let request = try request(accepting: types, try await body(handle))
        let response = try await rules.transport.open(request, handle)
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
        let room = try shared.bodies.admit(Int64(size), of: context.owner, within: context.roomForBody)
        let file = try await BodyFile.writing(
            { [body] in body.take() ?? [] }, in: room, leaving: settings.downloads.minimumFree, for: context,
            files: shared.files, queue: queue, handle.control)
        return .file(
            OutgoingFile(size: Int64(size), queue: queue) { (offset, buffer) throws(JobError) in
                try file.read(at: offset, into: buffer)
            })
    }

    private func request(accepting types: String, _ body: OutgoingRequest.Body?) throws(JobError) -> OutgoingRequest {
        var request = OutgoingRequest(
            try rules.policy.access.url(spec.url), method: spec.method, headers: spec.headers,
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
        let budget = settings.limits.documentValues
        if case .whole(let bytes) = body, bytes.count <= Self.smallDocument {
            return try Self.value(at: pointer, in: bytes, from: url, within: budget).value
        }
        return try await shared.documents.value(
            ofSize: body.size, within: budget, for: context, on: queue, handle.control
        ) { () throws(JobError) in
            let bytes: [UInt8]
            switch body {
            case .whole(let received): bytes = received
            case .spilled(let size): bytes = try file.read(size)
            }
            return try Self.value(at: pointer, in: bytes, from: url, within: budget)
        }
    }

    private static func value(
        at pointer: JSONPointer, in bytes: [UInt8], from url: RequestURL, within budget: Int
    ) throws(JobError) -> (value: JSON, cost: Int) {
        // A byte order mark does not belong in JSON, but some servers send one.
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
            throw JobError(.parse, "The body of \(SourceMessage.quoted(url)) is no JSON: \(error); check the URL.")
        }
        throw JobError(
            .select, "The JSON of \(SourceMessage.quoted(url)) has nothing at \"\(pointer)\"; check the pointer.")
    }
}
