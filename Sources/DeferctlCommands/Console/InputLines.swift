import Dispatch
import JobModel
import SystemPackage

struct InputLines: Sendable {
    /// A line with its number, counted from 1.
    typealias Line = (number: Int, bytes: [UInt8])

    let name: String
    /// The file that is read, up to its end.
    private var path: String?
    private var descriptor: FileDescriptor?
    /// The input that was read, of which the first `scanned` bytes have no line feed.
    private var rest: ArraySlice<UInt8>
    private var scanned = 0
    private var number = 0

    /// The lines of a file; `-` is standard input.
    init(path: String) { (name, self.path, rest) = (path == "-" ? "standard input" : path, path, []) }

    init(text: String) { (name, path, rest) = ("the argument", nil, Array(text.utf8)[...]) }

    /// The next line that is not blank; nil at the end.
    mutating func next() async throws(CommandFailure) -> Line? {
        while true {
            if let end = rest.dropFirst(scanned).firstIndex(of: UInt8(ascii: "\n")) {
                if let line = take(to: end) { return line }
                continue
            }
            scanned = rest.count
            // The last line needs no line feed.
            guard try await readMore() else { return take(to: rest.endIndex) }
        }
    }

    /// All bytes behind the lines that were taken.
    mutating func remainder() async throws(CommandFailure) -> [UInt8] {
        while try await readMore() {}
        defer { rest = [] }
        return Array(rest)
    }

    /// A member with the text of a file; if that is not UTF-8, the member for its bytes in base64.
    static func member(_ name: String, of path: String) async throws(CommandFailure) -> (name: String, value: JSON) {
        var input = InputLines(path: path)
        let bytes = try await input.remainder()
        return String(validating: bytes, as: UTF8.self).map { (name, .string($0)) }
            ?? (name + "Base64", .string(Base64.encode(bytes)))
    }

    private mutating func readMore() async throws(CommandFailure) -> Bool {
        guard let path else { return false }
        let file = if let descriptor { descriptor } else { try Self.open(path) }
        descriptor = file
        let piece = try await Self.read(file, path)
        if piece.isEmpty { self.path = nil } else { rest += piece }
        return !piece.isEmpty
    }

    private static func open(_ path: String) throws(CommandFailure) -> FileDescriptor {
        if path == "-" { return .standardInput }
        do { return try .open(path, .readOnly, options: .closeOnExec) } catch {
            let isForbidden = [.permissionDenied, .notPermitted].contains(error as? Errno)
            throw CommandFailure(
                isForbidden ? .forbidden : .badData,
                "\(path) cannot be opened: \(error). Name another file, or - for standard input.")
        }
    }

    /// The next bytes, at most 64 KiB, or none at the end. Waiting blocks no other task, and ends when the task is cancelled.
    private static func read(_ file: FileDescriptor, _ path: String) async throws(CommandFailure) -> [UInt8] {
        let (pieces, continuation) = AsyncStream.makeStream(of: Result<[UInt8], any Error>.self)
        // This call blocks, and the shared queues have few threads.
        DispatchQueue(label: "input").async {
            continuation.yield(
                Result {
                    try [UInt8](unsafeUninitializedCapacity: 64 << 10) { buffer, count in
                        count = try file.read(into: UnsafeMutableRawBufferPointer(buffer))
                    }
                })
            continuation.finish()
        }
        for await piece in pieces {
            do { return try piece.get() } catch {
                throw CommandFailure(.badData, "\(path == "-" ? "Standard input" : path) cannot be read: \(error).")
            }
        }
        throw CommandFailure(.tryAgain, "Reading \(path) was interrupted.")
    }

    /// Removes the bytes of a line; nil if it is blank.
    private mutating func take(to end: Int) -> Line? {
        let bytes = rest[..<end]
        rest = rest[end...].dropFirst()
        scanned = 0
        number += 1
        return bytes.contains { ![0x20, 0x09, 0x0D].contains($0) } ? (number, Array(bytes)) : nil
    }
}
