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

    /// Adds the body to a result; a line without its end.
    func add(to result: inout JSONObject, as name: String = "body", isLine: Bool = false) {
        switch self {
        case .whole(let bytes):
            let content = isLine && bytes.last == UInt8(ascii: "\n") ? bytes.dropLast() : bytes[...]
            let text = String(validating: content, as: UTF8.self)
            result.append(name, (text ?? Base64.encode(bytes)).json)
            if text == nil { result.append("encoding", "base64") }
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
        try await keeping { (file) async throws(JobError) in
            try await body(
                of: response, hasBody: hasBody, in: file, beyond: settings.limits.inlineResult,
                upTo: context.roomForBody, report: report)
        }
    }

    /// Keeps the file with the body that `receive` writes, if it is in the file.
    func keeping(_ receive: (BodyFile) async throws(JobError) -> ResponseBody) async throws(JobError) -> ResponseBody {
        let file = BodyFile(self, isNamed: true)
        do throws(JobError) {
            let body = try await receive(file)
            if case .spilled(let size) = body {
                try await file.sync()
                guard !Task.isCancelled else { throw TransferControl.cancelled }
                context.keptBody(Int64(size))
            } else if file.descriptor >= 0 {
                await ownFiles.run { file.remove() }
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
