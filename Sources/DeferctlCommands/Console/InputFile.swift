import Dispatch
import Glibc
import SystemPackage

/// A file, or standard input, that is read from the beginning to the end.
final class InputFile: Sendable {
    private let path: String
    private let descriptor: Int32

    /// Opens the file at `path`; `-` is standard input.
    init(path: String) throws(CommandFailure) {
        self.path = path
        descriptor = path == "-" ? STDIN_FILENO : open(path, O_RDONLY | O_CLOEXEC)
        guard descriptor >= 0 else {
            let status: ExitStatus = errno == EACCES || errno == EPERM ? .forbidden : .badData
            throw CommandFailure(
                status,
                "\(path) cannot be opened: \(Errno(rawValue: errno)). Name another file, or - for standard input.")
        }
    }

    deinit {
        if descriptor != STDIN_FILENO { close(descriptor) }
    }

    /// The next bytes, at most 64 KiB; none at the end.
    ///
    /// Waiting for them blocks no other task, and ends when the task is cancelled.
    func read() async throws(CommandFailure) -> [UInt8] {
        let (pieces, continuation) = AsyncStream.makeStream(of: Result<[UInt8], Errno>.self)
        // A queue of its own gets a thread of its own; the shared ones have few, and this call blocks.
        DispatchQueue(label: "input").async { [descriptor] in
            continuation.yield(Self.read(descriptor))
            continuation.finish()
        }
        for await piece in pieces {
            do { return try piece.get() } catch {
                throw CommandFailure(.badData, "\(path) cannot be read: \(error).")
            }
        }
        throw CommandFailure(.tryAgain, "Reading \(path) was given up.")
    }

    private static func read(_ descriptor: Int32) -> Result<[UInt8], Errno> {
        while true {
            var bytes = [UInt8](repeating: 0, count: 64 << 10)
            let count = Glibc.read(descriptor, &bytes, bytes.count)
            if count >= 0 { return .success(Array(bytes[..<count])) }
            if errno != EINTR { return .failure(Errno(rawValue: errno)) }
        }
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
                throw CommandFailure(.badData, "\(path) is larger than \(limit) bytes, the most that can be sent.")
            }
        }
    }
}

/// The lines of a file, of standard input or of a text, read piece by piece.
struct InputLines: Sendable {
    /// The longest line, and the largest document of many lines, that is read.
    static let limit = 64 << 20

    /// A line with its number, from 1; empty lines are left out.
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

    /// The lines of the file at `path`; `-` is standard input.
    init(path: String) {
        self.path = path
    }

    /// The lines of `text`.
    init(text: String) {
        path = ""
        isAtEnd = true
        add(Array(text.utf8))
    }

    /// The next line, or nil at the end.
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

    /// Adds the lines that these bytes end; at the end the last line needs no line feed.
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
