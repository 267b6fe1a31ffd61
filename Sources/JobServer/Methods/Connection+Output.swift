import DeferredKit
import JobCore
import JobEngine
import JobModel
import JobProtocol
import LoopTasks
import NIOCore

/// `job.output`.
extension Connection {
    /// The most bytes of output in an answer.
    private static let longestOutput = 256 << 10
    /// A piece must have room for a whole character.
    private static let shortestOutput = 4
    /// The most seconds for which an answer waits.
    private static let longestWait = 60.0

    private struct OutputRequest: Sendable {
        let job: JobID
        let link: Int?
        let attempt: Int?
        let offset: Int64
        let length: Int
    }

    func jobOutput(_ call: Call) async throws {
        let params = try call.params(["job", "link", "attempt", "offset", "length", "wait"])
        let length = try params.integer("length", in: 1...Int.max) ?? Self.longestOutput
        let request = OutputRequest(
            job: try params.job(), link: try params.integer("link", in: 0...Int(Int32.max)),
            attempt: try params.integer("attempt", in: 1...Int.max),
            offset: Int64(try params.integer("offset", in: -(1 << 53)...1 << 53) ?? 0),
            length: max(Self.shortestOutput, min(length, Self.longestOutput)))
        let wait = try params.number("wait", in: 0...Self.longestWait) ?? 0
        if wait == 0 { return call.succeed(Self.answer(try await output(request))) }
        let end = NIODeadline.now() + .seconds(saturating: wait)
        let timer = loop.loop.scheduleTask(deadline: end) {}
        try goOn(engine.nextID(), call, jobs: 1, timer) { [self] id in
            while true {
                // Asked before the output is read, so that none is missed.
                let promise = Promise<Void, Never>()
                engine.board.awaitOutput(of: request.job, beyond: request.offset, promise)
                timer.futureResult.whenComplete { _ in promise.succeed(()) }
                defer { promise.succeed(()) }
                let found = try await output(request)
                if found.piece.next > request.offset || found.isOver || NIODeadline.now() >= end {
                    return Self.answer(found).utf8
                }
                await promise.deferred.get()
                guard isWaiting(id) else { throw Self.shuttingDown }
            }
        }
    }

    /// A piece of output, and whether nothing follows it.
    private typealias Output = (piece: OutputPiece, isOver: Bool)

    private func output(_ request: OutputRequest) async throws -> Output {
        if let run = engine.runElsewhere(of: request.job) {
            // Only those who may read the job make another node copy its output.
            _ = try await look { try $0.job(request.job).row.id }
            await engine.fetchOutput(of: run, for: caller.uid)
        }
        return try await look { lookup in
            let (file, isOver) = try lookup.output(of: request.job, link: request.link, attempt: request.attempt)
            guard let file else { return (OutputPiece(at: request.offset), isOver) }
            do throws(StoreError) {
                let piece = try lookup.engine.blobs.output(
                    file, from: request.offset, length: request.length, isOver: isOver)
                return (piece, isOver && piece.next >= piece.size)
            } catch {
                throw ProtocolError(
                    .storage, "The output of job \(request.job) cannot be read: \(error.message)")
            }
        }
    }

    private static func answer(_ output: Output) -> JSON {
        let records = output.piece.records.map { record -> JSON in
            let stream: JSON = record.isError ? "err" : "out"
            // Text with many control characters is longer in JSON.
            if let text = String(validating: record.bytes, as: UTF8.self).map(JSON.string),
                text.size <= 2 * record.bytes.count + 2
            {
                return ["stream": stream, "text": text]
            }
            return ["stream": stream, "base64": .string(Base64.encode(record.bytes))]
        }
        return [
            "records": .array(records), "next": JSON(Int(output.piece.next)), "end": .bool(output.isOver),
            "omitted": JSON(Int(output.piece.omitted)),
        ]
    }
}
