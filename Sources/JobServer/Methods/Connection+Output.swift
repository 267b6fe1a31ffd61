import DeferredKit
import JobCore
import JobEngine
import JobModel
import JobProtocol
import LoopTasks
import NIOCore
import Synchronization

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
        if wait == 0 { return answer(call, try await output(request)) }
        let id = engine.nextID()
        let timer = loop.loop.scheduleTask(in: .seconds(saturating: wait)) {}
        try begin(id, call, jobs: 1, timer)
        goOn(id) { [self] in
            let output = try await output(request, until: timer, of: id)
            if let call = endWait(id) { answer(call, output) }
        }
    }

    /// A piece of output, and whether nothing follows it.
    private typealias Output = (piece: OutputPiece, isOver: Bool)

    /// Reads a piece once there is one, or the output or the time is over.
    private func output(
        _ request: OutputRequest, until timer: Scheduled<Void>, of id: RequestID
    ) async throws -> Output {
        let isLate = Mutex(false)
        timer.futureResult.whenComplete { _ in isLate.withLock { $0 = true } }
        while true {
            // Asked before the output is read, so that none is missed.
            let promise = Promise<Void, Never>()
            engine.board.awaitOutput(of: request.job, beyond: request.offset, promise)
            timer.futureResult.whenComplete { _ in promise.succeed(()) }
            defer { promise.succeed(()) }
            let found = try await output(request)
            if found.piece.next > request.offset || found.isOver || isLate.withLock(\.self) { return found }
            await promise.deferred.get()
            guard isWaiting(id) else { throw Self.shuttingDown }
        }
    }

    private func output(_ request: OutputRequest) async throws -> Output {
        if let run = engine.runElsewhere(of: request.job) {
            // Only those who may read the job make another node copy its output.
            _ = try await look { try $0.job(request.job).row.id }
            await engine.fetchOutput(of: run, for: caller.uid)
        }
        return try await look { lookup in
            let output = try lookup.output(of: request.job, link: request.link, attempt: request.attempt)
            guard let file = output.file else { return (OutputPiece(at: request.offset), output.isOver) }
            do throws(StoreError) {
                let piece = try lookup.engine.blobs.output(
                    file, from: request.offset, length: request.length, isOver: output.isOver)
                return (piece, output.isOver && piece.next >= piece.size)
            } catch {
                throw ProtocolError(
                    .storage, "The output of job \(request.job) cannot be read: \(error.message)")
            }
        }
    }

    private func answer(_ call: Call, _ output: Output) {
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
        call.succeed([
            "records": .array(records), "next": JSON(Int(output.piece.next)), "end": .bool(output.isOver),
            "omitted": JSON(Int(output.piece.omitted)),
        ])
    }
}
