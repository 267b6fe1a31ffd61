import Glibc
import JobModel
import Synchronization
import SystemPackage

/// A body, or the input or output of a program: in memory while it is short, and then in a file.
///
/// The file has no name, so it disappears with the last reference to it; only the body of a result has a name, until
/// ``remove()``. One task uses it at a time.
final class BodyFile: Sendable {
    private struct State {
        /// The bytes at the end that are not in the file.
        var memory: [UInt8] = []
        var size = 0
        var opened: (file: OpenFile, directory: OpenFile, name: String)?
    }

    private let path: String
    private let isNamed: Bool
    /// The bytes beyond which it is in a file.
    private let longestInMemory: Int
    /// The most bytes in the file.
    let room: Int64
    private let directory: OpenFile?
    private let files: FileOperations
    private let queue: FileQueue
    /// The user's share of disk space that the file takes.
    private let lease: Lease?
    private let state = Mutex(State())

    /// `isNamed` says whether it is the body of a result.
    init(_ transfer: Transfer, isNamed: Bool = false, inMemory longest: Int, lease: Lease? = nil) {
        let context = transfer.context
        path = isNamed ? context.bodyPath : context.bodyPath + ".open"
        self.isNamed = isNamed
        longestInMemory = longest
        room = isNamed ? context.roomForBody : .max
        self.lease = lease
        directory = context.bodyDirectory
        files = transfer.files
        queue = transfer.ownFiles
    }

    /// The longest body, document, input or output in memory: a slow server or program would keep a longer one there
    /// for long, and parsing it would block the event loop.
    static let longestInMemory = 64 << 10

    /// Moves many bytes from memory to a file, which counts for the user and leaves the disk its free space; nil for few.
    static func moving(
        _ bytes: @escaping @Sendable () -> [UInt8], ofSize size: Int, for name: String, _ transfer: Transfer
    ) async throws(JobError) -> BodyFile? {
        guard size > longestInMemory else { return nil }
        let lease = try transfer.spillLease(Int64(size), for: name)
        let minimumFree = Int64(transfer.settings.downloads.minimumFree)
        return try await transfer.control.run(on: transfer.ownFiles) { () throws(JobError) in
            let file = BodyFile(transfer, inMemory: 0, lease: lease)
            file.add(bytes())
            try file.flush(leaving: minimumFree)
            return file
        }
    }

    var size: Int { state.withLock(\.size) }
    var isInMemory: Bool { size <= longestInMemory }
    /// All bytes while they are in memory.
    var memory: [UInt8] { state.withLock(\.memory) }
    /// The open file; -1 before the first write.
    var descriptor: Int32 { state.withLock { $0.opened?.file.descriptor ?? -1 } }

    func add(_ bytes: some Collection<UInt8>) {
        state.withLock { state in
            state.memory += bytes
            state.size += bytes.count
        }
    }

    /// Writes what was added to the file, if the body is long.
    func write() async throws(JobError) {
        if !isInMemory { try await queue.run { [self] () throws(JobError) in try flush() } }
    }

    /// Blocks.
    private func flush(leaving minimumFree: Int64 = 0) throws(JobError) {
        let (bytes, size) = state.withLock { (exchange(&$0.memory, with: []), $0.size) }
        do throws(Errno) {
            let file = try open().descriptor
            if minimumFree > 0, let free = files.freeBytes(file),
                free.saturatingSubtracting(Int64(bytes.count)) < minimumFree
            {
                throw Errno.noSpace
            }
            try files.write(bytes, to: file, at: Int64(size - bytes.count))
        } catch {
            guard minimumFree > 0, error == .noSpace else { throw JobError(storage: error, "written", path) }
            throw .withoutRoom(
                "\"\(path)\" needs \(bytes.count) bytes, and \(minimumFree) must stay free on its disk; make room.")
        }
    }

    private func open() throws(Errno) -> OpenFile {
        if let file = state.withLock({ $0.opened?.file }) { return file }
        let (directory, name) = try files.directory(of: path, directory)
        // A killed daemon may have left an unnamed file while it had a name.
        if !isNamed { try? files.unlink(directory.descriptor, name) }
        let flags = O_RDWR | O_CREAT | O_NOFOLLOW | (isNamed ? O_TRUNC : O_EXCL)
        let file = OpenFile(try files.openBeneath(directory.descriptor, name, flags, 0o600), files, closedOn: queue)
        // Not with O_TMPFILE, which some file systems lack.
        if !isNamed { try files.unlink(directory.descriptor, name) }
        state.withLock { $0.opened = (file, directory, name) }
        return file
    }

    func read() throws(JobError) -> [UInt8] {
        if isInMemory { return memory }
        var bytes = [UInt8](repeating: 0, count: size)
        try bytes.withUnsafeMutableBufferPointer { (buffer) throws(JobError) in
            try read(at: 0, into: UnsafeMutableRawBufferPointer(buffer))
        }
        return bytes
    }

    /// Reads from `offset` on until `buffer` is full. Blocks.
    func read(at offset: Int64, into buffer: UnsafeMutableRawBufferPointer) throws(JobError) {
        try JobError.naming(path, "read") { () throws(Errno) in
            // No other process writes to the file, so only a broken file system loses bytes.
            guard try files.fill(buffer, from: descriptor, at: offset) == buffer.count else { throw Errno.ioError }
        }
    }

    func sync() async throws(JobError) {
        try await queue.run { [self] () throws(JobError) in
            try JobError.naming(path, "synced") { () throws(Errno) in
                try files.sync(descriptor)
                if let directory = state.withLock({ $0.opened?.directory }) { try files.sync(directory.descriptor) }
            }
        }
    }

    /// Removes all bytes, and the name of the file. Blocks.
    func remove() {
        let opened = state.withLock { exchange(&$0, with: State()).opened }
        // The next start of the daemon tries again.
        if isNamed, let opened { try? files.unlink(opened.directory.descriptor, opened.name) }
    }

    /// Adds the body to a result; a line without its end.
    func add(to result: inout JSONObject, as name: String = "body", isLine: Bool = false) {
        guard isInMemory else { return result.append("spilled", true) }
        let bytes = memory
        let content = isLine && bytes.last == UInt8(ascii: "\n") ? bytes.dropLast() : bytes[...]
        let text = String(validating: content, as: UTF8.self)
        result.append(name, (text ?? Base64.encode(bytes)).json)
        if text == nil { result.append("encoding", "base64") }
    }
}

extension Transfer {
    /// Keeps the body that `receive` adds for the job's result; if it is longer than `limits.inlineResult`, in a file that
    /// `job.result` reads. Throws if the transfer was stopped meanwhile, unless it `mayBeLate`.
    func keeping(
        mayBeLate: Bool = false, _ receive: (BodyFile) async throws(JobError) -> Void
    ) async throws(JobError) -> BodyFile {
        let file = BodyFile(self, isNamed: true, inMemory: settings.limits.inlineResult)
        do throws(JobError) {
            try await receive(file)
            if !file.isInMemory {
                try await file.sync()
                // Of an attempt that was given up, nothing would remove the file.
                if !mayBeLate { try control.check() }
                context.keptBody(Int64(file.size))
            }
            return file
        } catch {
            await ownFiles.run { file.remove() }
            throw error
        }
    }

    /// Leases `size` bytes of disk space within the quota that the user has left; error messages call the bytes `name`.
    func spillLease(_ size: Int64, for name: String) throws(JobError) -> Lease {
        let room = context.roomForBody
        guard size <= room else {
            throw JobError(
                .tooLarge,
                "The \(name) of \(size) bytes cannot be kept: your jobs have room for \(max(0, room)) more bytes; "
                    + "remove finished jobs, then retry the job.")
        }
        return try shared.spills.lease(size, of: owner, within: room) { used in
            .withoutRoom(
                "Request bodies and inputs of programs of your jobs take \(used) of \(room) bytes; wait for some to be sent."
            )
        }
    }
}
