import DeferredKit
import JobModel
import NIOCore
import Synchronization
import SystemPackage

/// The output of one attempt of a program: its log, its progress, and its part of the result.
final class ProgramOutput: Sendable {
    let log: OutputWriter
    private let attempt: ProgramAttempt
    private var transfer: Transfer { attempt.transfer }
    /// The standard output without lines of progress: its size, and itself while it is short.
    private let written = Mutex<(size: Int, short: [UInt8]?)>((0, []))
    private let readsProgress: Bool

    init(of attempt: ProgramAttempt) {
        self.attempt = attempt
        log = OutputWriter(limit: attempt.command.output, attempt.transfer)
        readsProgress = if case .named = attempt.spec.subject { true } else { attempt.spec.reportsProgress }
    }

    /// Writes the output to the log until it ends.
    func read(_ reader: PipeReader) async {
        var lines = ProgressLines()
        while let chunks = await reader.next() {
            for chunk in chunks where chunk.pipe == OutputLog.Stream.out.rawValue {
                guard readsProgress else {
                    keep(chunk.bytes.readableBytesView)
                    continue
                }
                if let progress = chunk.bytes.withUnsafeReadableBytes({ lines.append($0) }) { report(progress) }
                keep(lines.drain())
            }
            await transfer.ownFiles.run { [log] in log.append(chunks) }
            transfer.context.reportOutput(log.size)
        }
        if let progress = lines.end() { report(progress) }
        keep(lines.drain())
    }

    private func keep(_ bytes: some Collection<UInt8>) {
        written.withLock { written in
            written.size += bytes.count
            if written.size > BodyFile.longestInMemory { written.short = nil }
            written.short?.append(contentsOf: bytes)
        }
    }

    private func report(_ progress: ProgressLines.Progress) {
        transfer.context.countsIn(progress.unit)
        transfer.report(ProgressUpdate(completed: progress.completed, total: progress.total))
    }

    // MARK: - Result

    func result() async throws(JobError) -> JSON {
        var result: JSONObject = ["exit": 0]
        let size = written.withLock(\.size)
        var kept = size
        switch attempt.spec.output {
        case .none: break
        case .json: result["output"] = try await value()
        case .text:
            let room = transfer.context.roomForBody.saturatingSubtracting(log.space)
            do throws(JobError) {
                let body = try await transfer.keeping(mayBeLate: true) { (file) async throws(JobError) in
                    try await read(into: file, upTo: room)
                }
                kept = body.size
                if kept > 0 || size == 0 { body.add(to: &result, as: "output", isLine: true) }
            } catch  where error.kind == .storage {
                kept = 0
            }
        }
        result["size"] = JSON(size)
        // The result may have what the log lacks.
        let omitted = max(size - kept, Int(log.untold))
        if omitted > 0 { result["omitted"] = JSON(omitted) }
        return .object(result)
    }

    private func value() async throws(JobError) -> JSON {
        let file = BodyFile(transfer, inMemory: BodyFile.longestInMemory)
        try await read(into: file)
        guard file.size == written.withLock(\.size) else {
            throw JobError(
                .parse,
                "The program \(attempt.name) wrote more than is kept, so its output is not whole; have it write less, or "
                    + "raise limits.output.")
        }
        // Not that of the transfer: the program ended in time, but the rest of its group may have taken longer.
        let control = TransferControl(transfer.control.clock)
        return try await transfer.shared.documents.value(of: file, transfer, control) { (bytes) throws(JobError) in
            try self.parse(bytes)
        }
    }

    private func parse(_ bytes: [UInt8]) throws(JobError) -> (value: JSON, cost: Int) {
        do throws(JSONSyntaxError) {
            return try bytes.withUnsafeBufferPointer { (bytes) throws(JSONSyntaxError) in
                try JSONParser.parse(
                    UnsafeRawBufferPointer(bytes), budget: transfer.settings.limits.documentValues,
                    boundsCombining: true)
            }
        } catch  where error.isTooLarge {
            throw JobError(
                .tooLarge, "The output of \(attempt.name) has too many values, \(error); have it write fewer.")
        } catch {
            throw JobError(
                .parse, "The output of \(attempt.name) is not JSON: \(error); have it write JSON, or ask for \"text\".")
        }
    }

    /// The standard output, if it is short; the log may have dropped some of it, for a long standard error.
    private var whole: [UInt8]? { written.withLock(\.short).flatMap { $0.count <= attempt.command.output ? $0 : nil } }

    private static let pieceSize = 256 << 10

    /// Reads the standard output that is kept, without lines of progress; nothing if it exceeds `room`.
    private func read(into file: BodyFile, upTo room: Int64 = .max) async throws(JobError) {
        var lines = ProgressLines()
        var offset: Int64 = 0
        if let whole { file.add(whole) }
        while whole == nil, offset < log.size, file.size <= room {
            let piece: OutputPiece
            do throws(Errno) {
                piece = try await transfer.ownFiles.run { [log, offset] () throws(Errno) in
                    try log.reader?.piece(at: offset, length: Self.pieceSize, isOver: true) ?? OutputPiece(at: offset)
                }
            } catch {
                throw JobError(storage: error, "read", transfer.context.logPath)
            }
            // Nothing else is kept.
            guard piece.next > offset else { break }
            offset = piece.next
            for record in piece.records where !record.isError {
                guard readsProgress else {
                    file.add(record.bytes)
                    continue
                }
                _ = record.bytes.withUnsafeBytes { lines.append($0) }
                file.add(lines.drain())
            }
            try await file.write()
        }
        _ = lines.end()
        file.add(lines.drain())
        try await file.write()
        if file.size > room { await transfer.ownFiles.run { file.remove() } }
    }
}
