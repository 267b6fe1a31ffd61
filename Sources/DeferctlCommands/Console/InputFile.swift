import Dispatch
import SystemPackage

/// A file, or standard input, that is read from beginning to end.
struct InputFile: Sendable {
    private let path: String
    private let descriptor: FileDescriptor

    /// Opens the file at `path`; `-` is standard input.
    init(path: String) throws(CommandFailure) {
        self.path = path
        do {
            descriptor = path == "-" ? .standardInput : try .open(path, .readOnly, options: .closeOnExec)
        } catch {
            let isForbidden = [.permissionDenied, .notPermitted].contains(error as? Errno)
            throw CommandFailure(
                isForbidden ? .forbidden : .badData,
                "\(path) cannot be opened: \(error). Name another file, or - for standard input.")
        }
    }

    /// The next bytes, at most 64 KiB, or none at the end. Waiting blocks no other task, and ends when the task is cancelled.
    func read() async throws(CommandFailure) -> [UInt8] {
        let (pieces, continuation) = AsyncStream.makeStream(of: Result<[UInt8], any Error>.self)
        // This call blocks, and the shared queues have few threads.
        DispatchQueue(label: "input").async { [descriptor] in
            continuation.yield(
                Result {
                    try [UInt8](unsafeUninitializedCapacity: 64 << 10) { buffer, count in
                        count = try descriptor.read(into: UnsafeMutableRawBufferPointer(buffer))
                    }
                })
            continuation.finish()
        }
        for await piece in pieces {
            do { return try piece.get() } catch {
                throw CommandFailure(.badData, "\(path) cannot be read: \(error).")
            }
        }
        throw CommandFailure(.tryAgain, "Reading \(path) was interrupted.")
    }

    /// All bytes of the file at `path`, at most `limit`.
    static func contents(of path: String, limit: Int) async throws(CommandFailure) -> [UInt8] {
        let file = try InputFile(path: path)
        var bytes: [UInt8] = []
        while true {
            let piece = try await file.read()
            if piece.isEmpty { return bytes }
            bytes += piece
            guard bytes.count <= limit else {
                throw CommandFailure(
                    .badData, "\(path) is larger than the limit of \(limit) bytes; send a smaller file.")
            }
        }
    }
}

/// The lines of a file, of standard input or of a text, read piece by piece; empty lines are skipped.
struct InputLines: Sendable {
    /// The longest line, and the largest document of many lines.
    static let limit = 64 << 20

    struct Line: Sendable, Equatable {
        let number: Int
        let bytes: [UInt8]
    }

    private let path: String
    private var input: InputFile?
    private var ready: ArraySlice<Line> = []
    private var rest: [UInt8] = []
    private var number = 0
    private var isAtEnd = false

    init(path: String) {
        self.path = path
    }

    init(text: String) {
        path = ""
        isAtEnd = true
        add(Array(text.utf8))
    }

    mutating func next() async throws(CommandFailure) -> Line? {
        while ready.isEmpty, !isAtEnd {
            let file = if let input { input } else { try InputFile(path: path) }
            input = file
            let piece = try await file.read()
            isAtEnd = piece.isEmpty
            add(piece)
            guard rest.count <= Self.limit else {
                throw CommandFailure(
                    .badData, "Line \(number + 1) of \(path) is longer than \(Self.limit) bytes; split it.")
            }
        }
        return ready.popFirst()
    }

    /// Adds the lines that end in these bytes; the last line of the input needs no line feed.
    private mutating func add(_ bytes: [UInt8]) {
        let parts = bytes.split(separator: UInt8(ascii: "\n"), omittingEmptySubsequences: false)
        for (index, part) in parts.enumerated() {
            rest += part
            guard isAtEnd || index < parts.count - 1 else { break }
            number += 1
            if rest.contains(where: { ![0x20, 0x09, 0x0D].contains($0) }) {
                ready.append(Line(number: number, bytes: rest))
            }
            rest = []
        }
    }
}
