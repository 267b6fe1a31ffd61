import SystemPackage
import Dispatch
import Glibc

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
        let descriptor = descriptor
        let (pieces, continuation) = AsyncStream.makeStream(of: Result<[UInt8], Failure>.self)
        // A queue of its own gets a thread of its own; the shared ones have few, and this call blocks.
        DispatchQueue(label: "input").async {
            continuation.yield(Self.read(descriptor))
            continuation.finish()
        }
        for await piece in pieces {
            switch piece {
            case .success(let bytes): return bytes
            case .failure(let failure):
                throw CommandFailure(.badData, "\(path) cannot be read: \(Errno(rawValue: failure.number)).")
            }
        }
        throw CommandFailure(.tryAgain, "Reading \(path) was given up.")
    }

    private struct Failure: Error {
        let number: Int32
    }

    private static func read(_ descriptor: Int32) -> Result<[UInt8], Failure> {
        while true {
            var count = 0
            let bytes = [UInt8](unsafeUninitializedCapacity: 64 << 10) { buffer, initialized in
                count = Glibc.read(descriptor, buffer.baseAddress, buffer.count)
                initialized = max(0, count)
            }
            if count >= 0 { return .success(bytes) }
            if errno != EINTR { return .failure(Failure(number: errno)) }
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
