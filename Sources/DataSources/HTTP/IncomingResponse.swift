import Glibc
import JobModel
import NIOCore
import NIOHTTP1
import Synchronization

/// The answer to a request after all redirects: its head, and its body as it comes in.
///
/// An object, so that the asynchronous steps that use it share it instead of copying it.
final class IncomingResponse: Sendable {
    /// Where it came from, after redirects.
    let url: RequestURL
    let head: HTTPResponseHead
    private let stream: ResponseStream
    private let clock: any EventLoop
    /// Seconds that `Retry-After` counts for at most.
    private let longestPause: Double
    /// What decodes the body, where it is compressed and the reader is to have it decoded.
    private let inflater: Mutex<Inflater?>

    /// A compressed body is decoded where `limit` says how many compressed bytes it may have.
    init(
        url: RequestURL, head: HTTPResponseHead, stream: ResponseStream, clock: any EventLoop, longestPause: Double,
        decodingUpTo limit: Int? = nil
    ) throws {
        self.url = url
        self.head = head
        self.stream = stream
        self.clock = clock
        self.longestPause = longestPause
        inflater = Mutex(try limit.flatMap { Inflater.decodes(head.headers) ? try Inflater(limit: $0) : nil })
    }

    /// The seconds for which the server asks for no more requests, as far as the settings allow.
    var retryAfter: Double? {
        field("Retry-After").flatMap { RetryAfter.seconds($0, now: .now) }.map { min($0, longestPause) }
    }

    var status: Int { Int(head.status.code) }

    /// Whether the status tells of success. A 304 is the caller's to judge.
    var isSuccess: Bool { (200..<300).contains(status) }

    /// The first field of that name.
    func field(_ name: String) -> String? { head.headers.first(name: name) }

    /// The header's fields by their names in lower case; of a repeated one the values are joined.
    var fields: JSONObject {
        var fields = JSONObject()
        for (name, value) in head.headers {
            let name = name.lowercased()
            let earlier = fields[name]?.string.map { $0 + ", " } ?? ""
            fields[name] = .string(earlier + value)
        }
        return fields
    }

    /// The body's length as the server announced it.
    var contentLength: Int64? {
        guard !head.headers.contains(name: "Transfer-Encoding") else { return nil }
        return field("Content-Length").flatMap { Decimal.number($0) }
    }

    /// All of the body that has come in, or some of it decoded; nil at its end.
    func next() async throws(JobError) -> [ByteBuffer]? {
        do {
            while true {
                if let block = try inflater.withLock({ try $0?.next() }) { return [block] }
                let blocks = try await stream.next()
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

    /// Ends the transfer where it is still going on.
    func close() {
        stream.close()
    }

    /// Reads a short body to its end, so that the connection can be used again, and closes on any other.
    func discard() async {
        defer { close() }
        guard let length = contentLength, length <= 64 << 10 else { return }
        let stream = stream
        let timer = clock.scheduleTask(in: .seconds(2)) { stream.close() }
        // An error does not matter: nobody wants this body.
        while let blocks = try? await stream.next(), !blocks.isEmpty {}
        timer.cancel()
    }
}

extension Timestamp {
    /// The present time by the system's clock. `deferctl` has one of its own (`ProgressScreen.swift`): JobModel, all that both
    /// sides share, reads no clock.
    fileprivate static var now: Timestamp {
        var time = timespec()
        clock_gettime(CLOCK_REALTIME, &time)
        return Timestamp(milliseconds: Int64(time.tv_sec) * 1000 + Int64(time.tv_nsec) / 1_000_000)
    }
}
