import DeferredKit
import Glibc
import JobModel
import NIOCore
import NIOHTTP1

/// The sources `url` and `json`: one request, and its answer as a result.
struct DocumentSource: DataSource {
    /// What becomes of the answer.
    enum Form: Sendable {
        /// Status, headers and body.
        case response
        /// The value at this place of the JSON that the body is.
        case json(JSONPointer)
    }

    let spec: HTTPRequestSpec
    let form: Form
    let transport: HTTPTransport
    let policy: AccessPolicy
    let settings: SourceSettings
    let bodyPath: String
    let files: FileOperations
    let queue: FileQueue
    let task: TransferTask

    func start() -> Deferred<JSON, any Error> {
        task.start { handle async throws(JobError) in try await self.run(handle) }
    }

    private func run(_ handle: TransferHandle) async throws(JobError) -> JSON {
        let request = try request()
        let response = try await transport.open(request, handle)
        defer { response.close() }
        let isNotModified =
            response.status == 304
            && (request.headers.contains(name: "If-None-Match") || request.headers.contains(name: "If-Modified-Since"))
        guard isNotModified || response.isSuccess || spec.accept == .any else {
            await response.discard()
            throw response.statusError
        }
        switch form {
        case .response:
            let body = try await body(
                of: response, to: request.method, spillingBeyond: settings.limits.inlineResult, handle)
            return response.json(isNotModified: isNotModified, body: body)
        case .json(let pointer):
            // There is no document to select from; null says that nothing is new.
            if isNotModified { return .null }
            let body = try await body(of: response, to: request.method, spillingBeyond: nil, handle)
            return try await value(at: pointer, of: body, from: response.url)
        }
    }

    private func request() throws(JobError) -> OutgoingRequest {
        let accept =
            switch form {
            case .response: "*/*"
            case .json: "application/json, */*;q=0.5"
            }
        var request = OutgoingRequest(
            try policy.url(spec.url), method: spec.method, headers: spec.headers, body: spec.body, coding: .decoded,
            accept: accept, userAgent: settings.http.userAgent)
        if let tag = spec.ifNoneMatch { request.set("If-None-Match", tag) }
        if let time = spec.ifModifiedSince { request.set("If-Modified-Since", HTTPDate.text(time)) }
        return request
    }

    private func body(
        of response: IncomingResponse, to method: String, spillingBeyond threshold: Int?,
        _ handle: TransferHandle
    ) async throws(JobError) -> ResponseBody {
        let limit = settings.limits.body
        let announced = method == "HEAD" || response.status == 304 ? nil : response.contentLength
        if let announced, announced > limit { throw JobError(bodyOf: response.url, largerThan: limit) }
        let isEncoded = response.head.headers.contains(name: "Content-Encoding")
        let spill = SpillFile(path: bodyPath, files: files, queue: queue)
        return try await spill.removingUnlessFinished { () async throws(JobError) in
            var bytes: [UInt8] = []
            if let announced { bytes.reserveCapacity(min(Int(announced), threshold ?? limit, Self.smallDocument)) }
            var size = 0
            while let blocks = try await response.next() {
                size += blocks.reduce(0) { $0 + $1.readableBytes }
                guard size <= limit else { throw JobError(bodyOf: response.url, largerThan: limit) }
                for block in blocks { bytes.append(contentsOf: block.readableBytesView) }
                if let threshold, size > threshold {
                    try await spill.write(bytes)
                    bytes.removeAll(keepingCapacity: true)
                }
                handle.report(ProgressUpdate(completed: Int64(size), total: isEncoded ? nil : announced))
            }
            guard let threshold, size > threshold else { return .whole(bytes) }
            try await spill.finish()
            return .spilled(size: size)
        }
    }

    /// The largest document that is parsed on the event loop; others would hold it up.
    private static let smallDocument = 64 << 10

    private func value(
        at pointer: JSONPointer, of body: ResponseBody, from url: RequestURL
    ) async throws(JobError) -> JSON {
        guard case .whole(let bytes) = body else { preconditionFailure("A body to parse is never spilled.") }
        if bytes.count <= Self.smallDocument { return try Self.value(at: pointer, of: bytes, from: url) }
        return try await queue.run { () throws(JobError) in try Self.value(at: pointer, of: bytes, from: url) }
    }

    private static func value(at pointer: JSONPointer, of body: [UInt8], from url: RequestURL) throws(JobError) -> JSON
    {
        var bytes = body
        // A byte order mark has no place in JSON, but some servers send one.
        if bytes.starts(with: [0xEF, 0xBB, 0xBF]) { bytes.removeFirst(3) }
        let document: JSON
        do throws(JSONSyntaxError) {
            document = try JSON(parsing: bytes)
        } catch {
            throw JobError(.parse, "The body of \(SourceMessage.quoted(url)) is no JSON: \(error); check the URL.")
        }
        guard let value = document.value(at: pointer) else {
            throw JobError(
                .select, "The JSON of \(SourceMessage.quoted(url)) has nothing at \"\(pointer)\"; check the pointer.")
        }
        return value
    }
}
