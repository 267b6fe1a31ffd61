import Glibc
import JobModel
import Synchronization
import SystemPackage

/// A file for data that is too long for memory: a body, or the input or output of a program.
///
/// It has no name, so it disappears with the last reference to it; only the body of a result has a name, until
/// ``remove()``. One task uses it at a time.
final class BodyFile: Sendable {
    private let path: String
    private let isNamed: Bool
    private let directory: OpenFile?
    private let files: FileOperations
    private let queue: FileQueue
    /// The user's share of disk space that the file takes.
    private let lease: Lease?
    /// The file, its directory and its name in it, once it is made.
    private let opened = Mutex<(file: OpenFile, directory: OpenFile, name: String)?>(nil)

    /// The file is made with the first write. `isNamed` says whether it is the body of a result.
    init(_ transfer: Transfer, isNamed: Bool = false, lease: Lease? = nil) {
        let context = transfer.context
        path = isNamed ? context.bodyPath : context.bodyPath + ".open"
        self.isNamed = isNamed
        self.lease = lease
        directory = context.bodyDirectory
        files = transfer.files
        queue = transfer.ownFiles
    }

    /// Moves bytes of the given size from memory to a file, which counts for the user and leaves the disk its free
    /// space.
    static func moving(
        _ bytes: @escaping @Sendable () -> [UInt8], ofSize size: Int, for name: String, _ transfer: Transfer
    ) async throws(JobError) -> BodyFile {
        let lease = try transfer.spillLease(Int64(size), for: name)
        let minimumFree = Int64(transfer.settings.downloads.minimumFree)
        return try await transfer.control.run(on: transfer.ownFiles) { () throws(JobError) in
            let file = BodyFile(transfer, lease: lease)
            try file.append(bytes(), leaving: minimumFree)
            return file
        }
    }

    /// The open file; only after a write.
    var descriptor: Int32 { opened.withLock { $0?.file.descriptor ?? -1 } }

    func write(_ bytes: [UInt8]) async throws(JobError) {
        try await queue.run { [self] () throws(JobError) in try append(bytes) }
    }

    /// Blocks.
    private func append(_ bytes: [UInt8], leaving minimumFree: Int64 = 0) throws(JobError) {
        do throws(Errno) {
            let file = try open().descriptor
            if minimumFree > 0, let free = files.freeBytes(file),
                free.saturatingSubtracting(Int64(bytes.count)) < minimumFree
            {
                throw Errno.noSpace
            }
            try files.write(bytes, to: file)
        } catch {
            guard minimumFree > 0, error == .noSpace else { throw JobError(storage: error, "written", path) }
            throw .withoutRoom(
                "\"\(path)\" needs \(bytes.count) bytes, and \(minimumFree) must stay free on its disk; make room.")
        }
    }

    private func open() throws(Errno) -> OpenFile {
        if let file = opened.withLock({ $0?.file }) { return file }
        let (directory, name) = try files.directory(of: path, directory)
        // A killed daemon may have left an unnamed file while it had a name.
        if !isNamed { try? files.unlink(directory.descriptor, name) }
        let flags = O_RDWR | O_CREAT | O_NOFOLLOW | (isNamed ? O_TRUNC : O_EXCL)
        let file = OpenFile(try files.openBeneath(directory.descriptor, name, flags, 0o600), files, closedOn: queue)
        // Not with O_TMPFILE, which some file systems lack.
        if !isNamed { try files.unlink(directory.descriptor, name) }
        opened.withLock { $0 = (file, directory, name) }
        return file
    }

    /// Reads the first `size` bytes. Blocks.
    func read(_ size: Int) throws(JobError) -> [UInt8] {
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

    /// Makes the file and its name durable.
    func sync() async throws(JobError) {
        try await queue.run { [self] () throws(JobError) in
            try JobError.naming(path, "synced") { () throws(Errno) in
                try files.sync(descriptor)
                if let directory = opened.withLock({ $0?.directory }) { try files.sync(directory.descriptor) }
            }
        }
    }

    /// Removes the name. Blocks.
    func remove() {
        // The next start of the daemon tries again.
        guard isNamed, let opened = opened.withLock(\.self) else { return }
        try? files.unlink(opened.directory.descriptor, opened.name)
    }
}

extension Transfer {
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
