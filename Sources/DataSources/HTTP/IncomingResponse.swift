import DeferredKit
import JobModel
import NIOCore
import Synchronization

/// The response to a request after all redirects: its head, and its body as it arrives.
final class IncomingResponse: Sendable {
    let head: ResponseHead
    private let exchange: Exchange
    private let transfer: Transfer
    /// Decodes the body, if it is compressed and the reader wants it decoded.
    let inflater: Mutex<Inflater?>
    /// The coding of a body that cannot be decoded as its reader wants.
    private let foreignCoding: String?

    /// Decodes a compressed body with at most `limit` compressed bytes; nil leaves the body as it is sent. So does a
    /// coding that is not known, if the request asked for codings itself.
    init(_ head: ResponseHead, of exchange: Exchange, _ transfer: Transfer, decodingUpTo limit: Int?) throws {
        self.head = head
        self.exchange = exchange
        self.transfer = transfer
        let codings = limit == nil ? [] : Inflater.codings(head.headers)
        let isKnown = Inflater.decodes(codings)
        foreignCoding = isKnown || exchange.request.hasOwnCodings ? nil : codings.joined(separator: ", ")
        inflater = Mutex(isKnown && !codings.isEmpty ? try Inflater(codings, limit: limit ?? 0) : nil)
    }

    /// The URL after redirects.
    var url: RequestURL { exchange.request.url }

    var status: Int { head.status }

    var isSuccess: Bool { (200..<300).contains(status) }

    func field(_ name: String) -> String? { head.headers.first(name: name) }

    /// The reference in `Location`, whose bytes count: those of a value that is not UTF-8 are percent-encoded.
    var location: String? {
        guard let bytes = head.headers.bytes(name: "Location") else { return nil }
        return HTTPFields.utf8(bytes)
            ?? bytes.map { $0 < 0x80 ? String(Unicode.Scalar($0)) : "%" + String($0, radix: 16, uppercase: true) }
            .joined()
    }

    /// The fields of the header by lower-case names; the values of a repeated field are joined.
    var fields: JSONObject {
        var (names, values) = ([String](), [String: [String]]())
        // A look-up in an object takes a time that grows with it: 20 seconds, for the fields of one header.
        for (name, value) in head.headers {
            let name = name.lowercased()
            if values[name, default: []].isEmpty { names.append(name) }
            values[name, default: []].append(value)
        }
        return JSONObject(
            names.map { JSONObject.Member(name: $0, value: .string(values[$0, default: []].joined(separator: ", "))) })
    }

    /// The length of the body, if the server announced it, maybe only in the range of a part.
    var contentLength: Int64? {
        guard exchange.request.method != "HEAD", status != 204, status != 304 else { return nil }
        let isFramed = head.headers.contains(name: "Transfer-Encoding")
        let length = isFramed ? nil : head.headers.list("Content-Length").first.flatMap { Decimal.number($0) }
        return length ?? range.map { $0.end - $0.start }
    }

    /// The range of the file that a part has.
    var range: ContentRange? { status == 206 ? field("Content-Range").flatMap(ContentRange.init) : nil }

    /// Returns everything of the body that has arrived, or some of it decoded; nil at its end.
    func next() async throws(JobError) -> [ByteBuffer]? {
        do {
            while true {
                if let block = try inflater.withLock({ try $0?.next() }) {
                    // Few bytes may hold very many; a yield would not let the event loop read sockets meanwhile.
                    let isBusy = inflater.withLock { $0?.isBusy ?? false }
                    if isBusy { try await transfer.control.run(on: transfer.ownFiles) {} }
                    return [block]
                }
                let limiter = transfer.context.queueRate
                let blocks = try await exchange.next(atMost: limiter?.largestPiece ?? .max)
                if let blocks { transfer.context.transferred(blocks.byteCount) }
                if let foreignCoding, blocks != nil {
                    throw JobError(
                        .parse,
                        "The body of \(SourceMessage.quoted(url)) has the coding \(SourceMessage.quoted(noURL: foreignCoding)), which was not asked for; download it, or ask for that coding with the header Accept-Encoding."
                    )
                }
                if let blocks { try await limiter?.wait(for: blocks.byteCount, transfer.control) }
                let isDecoded = try inflater.withLock { inflater in
                    guard let inflater else { return false }
                    if let blocks { try inflater.add(blocks) } else { try inflater.finish() }
                    return true
                }
                guard isDecoded, blocks != nil else { return blocks }
            }
        } catch {
            throw JobError(transport: error, to: url)
        }
    }

    /// Receives the body within `limits.body`, with progress.
    func receive(
        into body: BodyFile, _ report: (ProgressUpdate) -> Void = { _ in }
    ) async throws(JobError) {
        let (limit, length) = (transfer.settings.limits.body, contentLength)
        let isEncoded = head.headers.contains(name: "Content-Encoding")
        if let length, length > limit { throw JobError(longBodyOf: url) }
        while let blocks = try await next() {
            for block in blocks { body.add(block.readableBytesView) }
            guard body.size <= limit else { throw JobError(longBodyOf: url) }
            guard body.isInMemory || body.size <= body.room else {
                throw JobError(
                    .tooLarge,
                    "The body of \(SourceMessage.quoted(url)) cannot be kept: your jobs have room for "
                        + "\(body.room) more bytes; remove finished jobs, then retry the job.")
            }
            try await body.write()
            report(ProgressUpdate(completed: Int64(body.size), total: isEncoded ? nil : length))
        }
    }

    /// Ends the exchange if it is still running.
    func close() { exchange.close() }

    /// Returns the first `count` bytes of the body, and closes the response. The rest of a short body is read, so that the
    /// connection can be reused, but not decoded.
    @discardableResult
    func discard(keeping count: Int = 0) async -> [UInt8] {
        let timer = transfer.clock.scheduleTask(in: .seconds(2)) { self.close() }
        defer {
            timer.cancel()
            close()
        }
        var bytes: [UInt8] = []
        // Pieces of what is compressed may be empty.
        for _ in 0..<count {
            guard bytes.count < count, let blocks = try? await next() else { break }
            for block in blocks { bytes += block.readableBytesView.prefix(count - bytes.count) }
        }
        if let contentLength, contentLength <= 64 << 10 { while (try? await exchange.next()) != nil {} }
        return bytes
    }
}

extension IncomingResponse {
    /// The error for a part of a file that nothing asked for; nil for any other response, and for a range with the whole
    /// file.
    var partError: JobError? {
        guard status == 206 else { return nil }
        if let range, range.start == 0, range.end == range.total, contentLength ?? range.end == range.end { return nil }
        return JobError(
            .network, "\(SourceMessage.quoted(url)) was answered with a part that was not asked for; try again.",
            retryable: true)
    }

    /// The error for an unsuccessful status, with the beginning of the body, in which services give the reason.
    func failure() async -> JobError {
        let body = await discard(keeping: JobError.longestBody + 1)
        var error = statusError
        error.http = JobError.response(status: status, reason: head.reason, body: body)
        return error
    }

    var statusError: JobError {
        let advice =
            switch status {
            case 401, 403, 407: "check the credentials"
            case 301, 302, 303, 404, 410: "check the URL"
            case 304: "send ifNoneMatch or ifModifiedSince"
            case 408, 425, 429, 500...599: "try again later"
            default: "check the request"
            }
        let reason = head.reason.echoed
        var error = JobError(
            .http,
            "\(SourceMessage.quoted(url)) was answered with \(status)\(reason.isEmpty ? "" : " " + reason); \(advice).",
            retryable: [408, 425, 429, 500, 502, 503, 504].contains(status),
            http: JobError.response(status: status, reason: reason))
        let pause = field("Retry-After").flatMap { RetryAfter.seconds($0, now: .now) }
        error.retryAfter = pause.map { min($0, transfer.settings.http.retryAfter) }
        error.retryAfterHost = url.hostAndPort
        return error
    }
}
