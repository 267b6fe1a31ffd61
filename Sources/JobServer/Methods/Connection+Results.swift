import DeferredKit
import JobCore
import JobEngine
import JobModel
import JobProtocol
import LoopTasks
import NIOCore
import Synchronization

/// `job.result`, `server.backup` and `job.output`, which are read in pieces.
extension Connection {
    /// The most bytes of a result or of output in an answer.
    fileprivate static let piece = 256 << 10

    // MARK: - Backups

    /// The daemon writes no file that a client names, as it has other rights than its administrators. The client reads the copy
    /// and writes it with its own.
    func serverBackup(_ call: Call) async throws {
        let params = try call.params(["offset", "length"])
        let offset = try params.integer("offset", in: 0...Int.max)
        let length = try call.piece(params)
        guard caller.isAdmin else {
            throw ProtocolError(.forbidden, "Only administrators may make a backup; ask one of them.")
        }
        guard engine.settings.store == .sqlite else {
            throw ProtocolError(
                .methodNotFound, "The jobs are in PostgreSQL; make backups of its database with pg_dump.")
        }
        guard let offset else {
            // The last one makes room first.
            if let last = state.withLock({ exchange(&$0.backup, with: nil) }) { engine.blobs.remove([last]) }
            let backup = try await engine.backUp()
            state.withLock { $0.backup = backup }
            return call.succeed(["size": backup.size.json])
        }
        guard let backup = state.withLock(\.backup) else {
            throw ProtocolError(
                .notFound, "This connection has made no backup; call server.backup without an offset first.")
        }
        let bytes = await engine.blocking(for: caller.uid) { [blobs = engine.blobs] in
            try? blobs.read(backup, offset: offset, length: length)
        }
        guard let bytes else { throw ProtocolError(.storage, "The backup cannot be read; make another one.") }
        call.succeed(bytes, of: Int(backup.size), at: offset)
    }

    // MARK: - Output of programs

    /// A piece must have room for a whole character.
    private static let shortestOutput = 4
    /// The most seconds for which an answer waits.
    private static let longestWait = 60.0

    func jobOutput(_ call: Call) async throws {
        let params = try call.params(["job", "link", "attempt", "offset", "length", "wait"])
        let length = try params.integer("length", in: 1...Int.max) ?? Self.piece
        let bytes = max(Self.shortestOutput, min(length, Self.piece))
        let (job, link) = (try params.job(), try params.integer("link", in: 0...Int(Int32.max)))
        let attempt = try params.integer("attempt", in: 1...Int.max)
        let offset = Int64(try params.integer("offset", in: -(1 << 53)...1 << 53) ?? 0)
        let wait = try params.number("wait", in: 0...Self.longestWait) ?? 0
        let output = { @Sendable [self] () async throws -> Output in
            if engine.settings.store == .postgresql,
                let run = try await look({ try $0.output(of: job, link: link, attempt: attempt).run }),
                !engine.runs(run)
            {
                await engine.fetchOutput(of: run, for: caller.uid)
            }
            return try await look { lookup in
                let (file, isOver, _) = try lookup.output(of: job, link: link, attempt: attempt)
                guard let file else { return (OutputPiece(at: offset), isOver) }
                var piece: OutputPiece
                do throws(StoreError) {
                    piece = try lookup.engine.blobs.output(file, from: offset, length: bytes, isOver: isOver)
                } catch {
                    throw ProtocolError(.storage, "The output of job \(job) cannot be read: \(error.message)")
                }
                if isOver, piece.size == 0 { piece = OutputPiece(lostBy: try lookup.job(job).row, at: offset) }
                return (piece, isOver && piece.next >= piece.size)
            }
        }
        if wait == 0 { return call.succeed(Self.answer(try await output())) }
        let end = NIODeadline.now() + .seconds(saturating: wait)
        try goOn(call, jobs: 1) { [self] turn in
            while true {
                // Asked before the output is read, so that none is missed.
                let promise = Promise<Void, Never>()
                let wake: @Sendable () -> Void = { promise.succeed(()) }
                engine.board.awaitOutput(of: job, beyond: offset, promise)
                defer { wake() }
                await outbox.beginTurn(of: turn)
                let found = try await output()
                if found.piece.next > offset || found.isOver || NIODeadline.now() >= end {
                    return Self.answer(found).utf8
                }
                outbox.endTurn(of: turn)
                let timer = loop.loop.scheduleTask(deadline: end, wake)
                defer { timer.cancel() }
                await withTaskCancellationHandler(operation: { await promise.deferred.get() }, onCancel: wake)
                try Task.checkCancellation()
            }
        }
    }

    /// A piece of output, and whether nothing follows it.
    private typealias Output = (piece: OutputPiece, isOver: Bool)

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

extension Lookup {
    func jobResult(_ call: Call) throws {
        let params = try call.params(["job", "offset", "length"])
        let id = try params.job()
        let offset = try params.integer("offset", in: 0...Int.max) ?? 0
        let length = try call.piece(params)
        switch try result(of: id) {
        case .inline(let bytes):
            call.succeed(Array(bytes.dropFirst(offset).prefix(length)), of: bytes.count, at: offset)
        case .file(let blob):
            do throws(StoreError) {
                let bytes = try engine.blobs.read(blob, offset: offset, length: length)
                call.succeed(bytes, of: Int(blob.size), at: offset)
            } catch {
                // The job may have been removed since.
                _ = try job(id)
                throw ProtocolError(.storage, "The result of job \(id) cannot be read: \(error.message)")
            }
        }
    }
}

extension Call {
    /// The bytes of the piece of a requested `length` for which the answer has room.
    fileprivate func piece(_ params: MemberReader) throws -> Int {
        let length = try params.integer("length", in: 0...Int.max)
        // Base64 turns three bytes into four.
        let piece = min(length ?? .max, Connection.piece, max(0, room - 128) / 4 * 3)
        guard piece > 0 || length == 0 else { throw Batch.full }
        return piece
    }

    fileprivate func succeed(_ bytes: [UInt8], of size: Int, at offset: Int) {
        succeed([
            "data": .string(Base64.encode(bytes)), "offset": JSON(offset), "size": JSON(size),
            "eof": .bool(offset >= size - bytes.count),
        ])
    }
}
