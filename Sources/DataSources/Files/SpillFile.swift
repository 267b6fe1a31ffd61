import SystemPackage
import Glibc
import JobModel
import Synchronization

/// The file of a body that is too large for a result.
final class SpillFile: Sendable {
    private let path: String
    private let directory: OpenDirectory?
    private let files: FileOperations
    private let queue: FileQueue
    private let state = Mutex<(file: ScratchFile?, isRemoved: Bool)>((nil, false))

    /// `directory` is the one in `path` where it is open already.
    init(path: String, in directory: OpenDirectory? = nil, files: FileOperations, queue: FileQueue) {
        self.path = path
        self.directory = directory
        self.files = files
        self.queue = queue
    }

    /// Runs `body`; where it throws or is cancelled, the file is removed.
    func removingUnlessFinished<Value: Sendable>(
        _ body: () async throws(JobError) -> Value
    ) async throws(JobError) -> Value {
        let outcome: Result<Value, JobError> = await withTaskCancellationHandler {
            do throws(JobError) {
                return .success(try await body())
            } catch {
                remove()
                return .failure(error)
            }
        } onCancel: {
            remove()
        }
        return try outcome.get()
    }

    /// Runs `body`; afterwards the file is removed.
    func removingAtEnd<Value: Sendable>(
        _ body: () async throws(JobError) -> Value
    ) async throws(JobError) -> Value {
        let value = try await removingUnlessFinished(body)
        remove()
        return value
    }

    /// All `size` bytes that were written. Blocks.
    func read(_ size: Int) throws(JobError) -> [UInt8] {
        do throws(Errno) {
            let file = try opened()
            try files.seek(file.descriptor, 0)
            var failure: Errno?
            let bytes = [UInt8](unsafeUninitializedCapacity: size) { buffer, count in
                do throws(Errno) {
                    while count < size {
                        let read = try files.read(
                            file.descriptor,
                            UnsafeMutableRawBufferPointer(rebasing: UnsafeMutableRawBufferPointer(buffer)[count...]))
                        // It is nobody else's; only a broken file system has lost some of it.
                        guard read > 0 else { throw Errno.ioError }
                        count += read
                    }
                } catch {
                    failure = error
                }
            }
            if let failure { throw failure }
            return bytes
        } catch {
            throw JobError(storage: error, "read", path)
        }
    }

    /// Appends; the first call makes the file.
    func write(_ bytes: [UInt8]) async throws(JobError) {
        try await perform("written") { [self] () throws(Errno) in
            let file = try opened()
            let written: Result<Void, Errno> = bytes.withUnsafeBytes { raw in
                Result { () throws(Errno) in try files.write(file.descriptor, raw) }
            }
            try written.get()
        }
    }

    /// Makes the file durable; it stays from then on.
    func finish() async throws(JobError) {
        try await perform("synced") { [self] () throws(Errno) in
            let file = try opened()
            try files.sync(file.descriptor)
            try files.sync(file.directory.descriptor)
            guard file.keep() else { throw Errno.canceled }
        }
    }

    private func perform(
        _ action: String, _ body: @escaping @Sendable () throws(Errno) -> Void
    ) async throws(JobError) {
        do throws(Errno) {
            try await queue.run(body)
        } catch {
            throw JobError(storage: error, action, path)
        }
    }

    private func opened() throws(Errno) -> ScratchFile {
        if let file = state.withLock({ $0.file }) { return file }
        let (above, name) = try OpenDirectory.above(path, opened: directory, files: files)
        let file = ScratchFile(in: above, files: files)
        let isRemoved = state.withLock { state in
            state.file = file
            return state.isRemoved
        }
        if isRemoved { file.remove() }
        try file.open(name, flags: O_RDWR | O_CREAT | O_TRUNC, mode: 0o600)
        return file
    }

    private func remove() {
        let file = state.withLock { state in
            state.isRemoved = true
            return state.file
        }
        file?.remove()
    }
}
