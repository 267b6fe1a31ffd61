import SystemPackage
import DeferredKit
import Glibc
import JobModel
import Synchronization

/// A file for what is too long for memory: a body that is sent or received, or what a program reads or writes.
///
/// It has no name, so that it goes with the last reference to it; but a result's body has one, until ``remove()``. One task
/// uses it at a time.
final class BodyFile: Sendable {
    private struct State {
        var descriptor: Int32 = -1
        var directory: OpenDirectory?
        var isRemoved = false
    }

    private let path: String
    private let isNamed: Bool
    private let directory: OpenDirectory?
    private let files: FileOperations
    private let queue: FileQueue
    /// What it takes up, where that counts.
    private let room: SpilledRoom?
    private let state = Mutex(State())

    /// Nothing is made before the first write. `isNamed` says whether it is the body of a result.
    init(
        of context: SourceContext, isNamed: Bool = false, in room: SpilledRoom? = nil, files: FileOperations,
        queue: FileQueue
    ) {
        path = isNamed ? context.bodyPath : context.bodyPath + ".open"
        self.isNamed = isNamed
        directory = context.bodyDirectory
        self.room = room
        self.files = files
        self.queue = queue
    }

    deinit {
        let (files, descriptor) = (files, state.withLock(\.descriptor))
        if descriptor >= 0 { queue.start { files.close(descriptor) } }
    }

    /// A file of what `bytes` gives, which leaves the disk `minimumFree` bytes. Who waits by `control` can give up at any time.
    static func writing(
        _ bytes: @escaping @Sendable () -> [UInt8], in room: SpilledRoom, leaving minimumFree: Int,
        for context: SourceContext, files: FileOperations, queue: FileQueue, _ control: TransferControl
    ) async throws(JobError) -> BodyFile {
        try await control.wait { promise in
            queue.start {
                // The bytes are freed even if the waiter has given up.
                let bytes = bytes()
                guard !promise.deferred.isResolved else { return }
                let file = BodyFile(of: context, in: room, files: files, queue: queue)
                promise.resolve(
                    Result { () throws(JobError) in
                        try file.append(bytes, leaving: Int64(minimumFree))
                        return file
                    })
            }
        }
    }

    /// Of the file; only after a write.
    var descriptor: Int32 { state.withLock(\.descriptor) }

    /// Appends; the first call makes the file.
    func write(_ bytes: [UInt8]) async throws(JobError) {
        try await queue.run { [self] () throws(JobError) in try append(bytes) }
    }

    /// Blocks.
    private func append(_ bytes: [UInt8], leaving minimumFree: Int64 = 0) throws(JobError) {
        do throws(Errno) {
            let file = try opened()
            let size = Int64(bytes.count)
            if minimumFree > 0, let free = files.freeBytes(file), free.saturatingSubtracting(size) < minimumFree {
                throw Errno.noSpace
            }
            try files.write(bytes, to: file)
        } catch {
            guard minimumFree > 0, error == .noSpace else { throw JobError(storage: error, "written", path) }
            throw .withoutRoom(
                "\"\(path)\" is to have \(bytes.count) bytes, and \(minimumFree) are left free on its disk; make room.")
        }
    }

    private func opened() throws(Errno) -> Int32 {
        let present = descriptor
        if present >= 0 { return present }
        let (above, name) = try OpenDirectory.above(path, opened: directory, files: files)
        let made =
            isNamed
            ? try files.openBeneath(above.descriptor, name, O_RDWR | O_CREAT | O_TRUNC | O_NOFOLLOW, 0o600)
            : try above.makeUnnamedFile(name)
        let isRemoved = state.withLock { state in
            (state.descriptor, state.directory) = (made, above)
            return state.isRemoved
        }
        guard isRemoved else { return made }
        if isNamed { try? files.unlink(above.descriptor, name) }
        throw Errno.canceled
    }

    /// The first `size` bytes. Blocks.
    func read(_ size: Int) throws(JobError) -> [UInt8] {
        var bytes = [UInt8](repeating: 0, count: size)
        try bytes.withUnsafeMutableBufferPointer { (buffer) throws(JobError) in
            try read(at: 0, into: UnsafeMutableRawBufferPointer(buffer))
        }
        return bytes
    }

    /// Reads from `offset` on until `buffer` is full. Blocks.
    func read(at offset: Int64, into buffer: UnsafeMutableRawBufferPointer) throws(JobError) {
        do throws(Errno) {
            // No other process writes to it, so only a broken file system loses bytes.
            guard try files.fill(buffer, from: descriptor, at: offset) == buffer.count else { throw Errno.ioError }
        } catch {
            throw JobError(storage: error, "read", path)
        }
    }

    /// Makes it and its name durable.
    func sync() async throws(JobError) {
        do throws(Errno) {
            try await queue.run { [self] () throws(Errno) in
                try files.sync(descriptor)
                if let directory = state.withLock(\.directory) { try files.sync(directory.descriptor) }
            }
        } catch {
            throw JobError(storage: error, "synced", path)
        }
    }

    /// Takes its name away, if it has one, and keeps it from getting it later. May come from any thread. Blocks.
    func remove() {
        let directory = state.withLock { state in
            defer { state.isRemoved = true }
            return state.isRemoved ? nil : state.directory
        }
        guard isNamed, let directory else { return }
        // What keeps it from being removed, the next start of the daemon tries again.
        try? files.unlink(directory.descriptor, String(path.split(separator: "/").last ?? ""))
    }

    /// Runs `body`; where it throws or is cancelled, the file is removed.
    func removingUnlessFinished<Value: Sendable>(
        _ body: () async throws(JobError) -> Value
    ) async throws(JobError) -> Value {
        let outcome: Result<Value, JobError> = await withTaskCancellationHandler {
            do throws(JobError) { return .success(try await body()) } catch { return .failure(error) }
        } onCancel: {
            remove()
        }
        if case .failure = outcome { await queue.run { [self] in remove() } }
        return try outcome.get()
    }
}
