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
            if written.size > DocumentTransfer.longestInMemory { written.short = nil }
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
        case .text: kept = try await addText(to: &result)
        }
        result["size"] = JSON(size)
        if kept < size { result["omitted"] = JSON(size - kept) }
        return .object(result)
    }

    /// Adds the standard output that is kept, and returns its size; a long one goes to a file of the job's own.
    private func addText(to result: inout JSONObject) async throws(JobError) -> Int {
        let (limit, room) = (
            transfer.settings.limits.inlineResult, transfer.context.roomForBody.saturatingSubtracting(log.space)
        )
        var size = 0
        let body = try await transfer.keeping { (file) async throws(JobError) in
            var bytes: [UInt8] = []
            try await forEachPiece { (piece) async throws(JobError) in
                size += piece.count
                bytes += piece
                guard size > limit else { return }
                if size <= room { try await file.write(bytes) }
                bytes = []
            }
            return size > limit && size <= room ? .spilled(size: size) : .whole(bytes)
        }
        guard size <= room else { return 0 }
        body.add(to: &result, as: "output", isLine: true)
        return size
    }

    /// The standard output as the JSON value that it is.
    private func value() async throws(JobError) -> JSON {
        if let short = whole { return try parse(short).value }
        let file = BodyFile(transfer)
        var size = 0
        try await forEachPiece { (piece) async throws(JobError) in
            size += piece.count
            try await file.write(piece)
        }
        guard size == written.withLock(\.size) else {
            throw JobError(
                .parse,
                "The program \(attempt.name) wrote more than is kept, so its output is not whole; have it write less, or "
                    + "raise limits.output.")
        }
        // The program ended in time; the rest of its group may have taken longer.
        let control = transfer.control
        let late = (try? control.check()) == nil ? TransferControl(control.clock) : control
        return try await transfer.shared.documents.value(ofSize: size, transfer, late) {
            [size] () throws(JobError) in try self.parse(try file.read(size))
        }
    }

    private func parse(_ bytes: [UInt8]) throws(JobError) -> (value: JSON, cost: Int) {
        do throws(JSONSyntaxError) {
            return try bytes.withUnsafeBufferPointer { (bytes) throws(JSONSyntaxError) in
                try JSONParser.parse(UnsafeRawBufferPointer(bytes), budget: transfer.settings.limits.documentValues)
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

    /// Passes the standard output that is kept to `body`, without lines of progress.
    private func forEachPiece(_ body: ([UInt8]) async throws(JobError) -> Void) async throws(JobError) {
        if let whole { return try await body(whole) }
        var lines = ProgressLines()
        var offset: Int64 = 0
        while let reader = log.reader, offset < log.size {
            let piece: OutputPiece
            do throws(Errno) {
                piece = try await transfer.ownFiles.run { [offset] () throws(Errno) in
                    try reader.piece(at: offset, length: Self.pieceSize, isOver: true)
                }
            } catch {
                throw JobError(storage: error, "read", transfer.context.logPath)
            }
            // Nothing else is kept.
            guard piece.next > offset else { break }
            offset = piece.next
            for record in piece.records where !record.isError {
                guard readsProgress else {
                    try await body(record.bytes)
                    continue
                }
                _ = record.bytes.withUnsafeBytes { lines.append($0) }
                try await body(lines.drain())
            }
        }
        _ = lines.end()
        try await body(lines.drain())
    }
}
