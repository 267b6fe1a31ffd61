import DeferredKit
import JobModel
import NIOCore

/// The body of a response, in memory or in a file.
enum ResponseBody: Sendable {
    case whole([UInt8])
    case spilled(size: Int)

    var size: Int {
        switch self {
        case .whole(let bytes): bytes.count
        case .spilled(let size): size
        }
    }

    func add(to result: inout JSONObject) {
        switch self {
        case .whole(let bytes):
            if let text = String(validating: bytes, as: UTF8.self) {
                result.append("body", .string(text))
            } else {
                result.append("body", .string(Base64.encode(bytes)))
                result.append("encoding", "base64")
            }
        case .spilled: result.append("spilled", true)
        }
    }
}

extension Transfer {
    /// Receives a body for the job's result; if it is longer than `limits.inlineResult`, into a file that `job.result` reads.
    func keptBody(
        of response: IncomingResponse, hasBody: Bool = true,
        report: @escaping @Sendable (ProgressUpdate) -> Void = { _ in }
    ) async throws(JobError) -> ResponseBody {
        let file = BodyFile(self, isNamed: true)
        do throws(JobError) {
            let body = try await body(
                of: response, hasBody: hasBody, in: file, beyond: settings.limits.inlineResult,
                upTo: context.roomForBody, report: report)
            if case .spilled(let size) = body {
                try await file.sync()
                guard !Task.isCancelled else { throw TransferControl.cancelled }
                context.keptBody(Int64(size))
            }
            return body
        } catch {
            await ownFiles.run { file.remove() }
            throw error
        }
    }

    /// Receives a body in memory, or in `file` if it is longer than `threshold`; there it may have `room` bytes.
    func body(
        of response: IncomingResponse, hasBody: Bool, in file: BodyFile, beyond threshold: Int, upTo room: Int64 = .max,
        report: @Sendable (ProgressUpdate) -> Void
    ) async throws(JobError) -> ResponseBody {
        let limit = settings.limits.body
        let announced = hasBody ? response.contentLength : nil
        if let announced, announced > limit { throw JobError(longBodyOf: response.url) }
        let isEncoded = response.head.headers.contains(name: "Content-Encoding")
        var bytes: [UInt8] = []
        if let announced { bytes.reserveCapacity(min(Int(announced), threshold, DocumentTransfer.longestInMemory)) }
        var size = 0
        while let blocks = try await response.next() {
            size += blocks.byteCount
            guard size <= limit else { throw JobError(longBodyOf: response.url) }
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
            report(ProgressUpdate(completed: Int64(size), total: isEncoded ? nil : announced))
        }
        return size > threshold ? .spilled(size: size) : .whole(bytes)
    }
}
