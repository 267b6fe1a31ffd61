import CLinux
import Glibc
import JobModel
package import SystemPackage

/// The calls that sources make into the file system; tests can replace the stored ones to let them fail.
///
/// All calls block and throw the call's own error. Paths are relative to `directory`.
package struct FileOperations: Sendable {
    // Uses the import: the compiler does not count typed throws.
    package typealias Failure = Errno

    /// Opens a directory by its absolute path, through symbolic links too: only for the daemon's own directories.
    package var openDirectory: @Sendable (_ path: String) throws(Errno) -> Int32 = { path throws(Errno) in
        try Self.call { Glibc.open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC) }
    }
    /// Opens a directory by its absolute path, through no symbolic link.
    package var openFromRoot: @Sendable (_ path: String, _ flags: Int32) throws(Errno) -> Int32 = {
        path, flags throws(Errno) in
        let root = try Self.call { Glibc.open("/", Self.pathOnly | O_DIRECTORY | O_CLOEXEC) }
        defer { _ = Glibc.close(root) }
        let below = path.drop { $0 == "/" }
        return try Self.open(below: root, below.isEmpty ? "." : String(below), flags | O_DIRECTORY, 0)
    }
    /// Opens a path below `directory` through no symbolic link: openat2 with RESOLVE_BENEATH, RESOLVE_NO_SYMLINKS and
    /// RESOLVE_NO_MAGICLINKS.
    package var openBeneath:
        @Sendable (_ directory: Int32, _ path: String, _ flags: Int32, _ mode: UInt32) throws(Errno) -> Int32 = {
            directory, path, flags, mode throws(Errno) in
            try Self.open(below: directory, path, flags, mode)
        }
    package var makeDirectory: @Sendable (_ directory: Int32, _ name: String, _ mode: UInt32) throws(Errno) -> Void =
        {
            directory, name, mode throws(Errno) in
            _ = try Self.call { mkdirat(directory, name, mode) }
        }
    package var writeAt:
        @Sendable (_ file: Int32, _ offset: Int64, _ bytes: UnsafeRawBufferPointer) throws(Errno) -> Void = {
            file, offset, bytes throws(Errno) in
            var count = 0
            while count < bytes.count {
                let rest = UnsafeRawBufferPointer(rebasing: bytes[count...])
                let written = try Self.call { pwrite(file, rest.baseAddress, rest.count, off_t(offset) + off_t(count)) }
                // Only a broken file system writes nothing without an error.
                guard written > 0 else { throw Errno.ioError }
                count += written
            }
        }
    /// Reads from an offset; returns 0 at the end of the file.
    package var readAt:
        @Sendable (_ file: Int32, _ offset: Int64, _ into: UnsafeMutableRawBufferPointer) throws(Errno) -> Int = {
            file, offset, buffer throws(Errno) in
            try Self.call { pread(file, buffer.baseAddress, buffer.count, off_t(offset)) }
        }
    package var sync: @Sendable (_ file: Int32) throws(Errno) -> Void = { file throws(Errno) in
        _ = try Self.call { fsync(file) }
    }
    /// Gives an open file an access list, or a directory the list for new files in it (`asDefault`).
    package var setAccessList: @Sendable (_ file: Int32, _ list: AccessList, _ asDefault: Bool) throws(Errno) -> Void =
        {
            file, list, asDefault throws(Errno) in
            let bytes = list.bytes
            _ = try Self.call { deferd_set_access_list(file, asDefault ? 1 : 0, bytes, bytes.count) }
        }
    package var groups: @Sendable (_ user: UInt32) -> Set<UInt32> = Self.systemGroups
    /// Renames a file; fails with EEXIST if the new name exists, unless it is to be replaced. Some file systems only replace.
    package var rename:
        @Sendable (_ directory: Int32, _ name: String, _ newName: String, _ replacing: Bool) throws(Errno) -> Void = {
            directory, name, newName, replacing throws(Errno) in
            _ = try Self.call { deferd_rename(directory, name, newName, replacing) }
        }
    package var link: @Sendable (_ directory: Int32, _ name: String, _ newName: String) throws(Errno) -> Void = {
        directory, name, newName throws(Errno) in
        _ = try Self.call { linkat(directory, name, directory, newName, 0) }
    }
    package var unlink: @Sendable (_ directory: Int32, _ name: String) throws(Errno) -> Void = {
        directory, name throws(Errno) in
        _ = try Self.call { unlinkat(directory, name, 0) }
    }
    /// The number of the disk of an open file, its size, and its free bytes for users other than root.
    package typealias Disk = (id: UInt64, size: Int64, free: Int64)
    /// The disk of an open file; nil if it is unknown.
    package var disk: @Sendable (_ file: Int32) -> Disk? = { file in
        var status = statvfs()
        guard fstatvfs(file, &status) == 0 else { return nil }
        func bytes(_ blocks: some BinaryInteger) -> Int64 {
            Int64(clamping: blocks).saturatingMultiplied(by: Int64(clamping: status.f_frsize))
        }
        return (UInt64(status.f_fsid), bytes(status.f_blocks), bytes(status.f_bavail))
    }
    /// An id that changes when the machine restarts, which loses pages that were not synced.
    package var bootID = Self.systemBootID

    package static let real = FileOperations()
}

extension FileOperations {
    package struct Status: Sendable, Hashable {
        /// What distinguishes a file from all others, also from a later one with its name.
        ///
        /// Not the number of its disk, which changes when the machine restarts.
        package struct Identity: Sendable, Hashable {
            package let inode: UInt64
            /// Nanoseconds since 1970; 0 if the file system does not keep it.
            package let createdAt: Int64
        }

        package let identity: Identity
        package let size: Int64
        /// Nanoseconds since 1970.
        package let modifiedAt: Int64
        package let isDirectory: Bool
        package let isRegular: Bool
        package let isSymbolicLink: Bool
        package let links: UInt32
        package let owner: UInt32
        package let group: UInt32
        package let mode: UInt32
    }
}
