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
                throw CommandFailure(.badData, "\(path == "-" ? "Standard input" : path) cannot be read: \(error).")
            }
        }
        throw CommandFailure(.tryAgain, "Reading \(path) was interrupted.")
    }
}
