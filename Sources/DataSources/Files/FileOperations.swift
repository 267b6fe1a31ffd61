package import SystemPackage

/// Every call that sources make into the file system, so that tests can let one fail.
///
/// Each closure blocks, so it runs on the file queue; each throws the call's own error. Paths are relative to `directory`.
package struct FileOperations: Sendable {
    /// What every call throws.
    package typealias Failure = Errno

    /// What is known of a file without opening it.
    package struct Status: Sendable, Hashable {
        /// What tells this file from every other, also from a later one of its name.
        package struct Identity: Sendable, Hashable {
            /// 0 in what was stored by a version that did not ask for it.
            package let device: UInt64
            package let inode: UInt64
            /// Nanoseconds since 1970; 0 where the file system does not keep it.
            package let createdAt: Int64

            /// Whether it is the same file, as far as what is kept over a restart of the machine can tell: disks get their
            /// numbers anew at each.
            func isSame(as other: Identity) -> Bool { inode == other.inode && createdAt == other.createdAt }
        }

        package let identity: Identity
        package let size: Int64
        /// Nanoseconds since 1970.
        package let modifiedAt: Int64
        package let isDirectory: Bool
        package let isRegular: Bool
        package let links: UInt32
        package let owner: UInt32
        package let group: UInt32
        package let mode: UInt32
    }

    /// Opens a directory by its absolute path, links included: one that nobody but the daemon's user can change the way to.
    package var openDirectory: @Sendable (_ path: String) throws(Failure) -> Int32
    /// Opens a directory by its absolute path through no symbolic link, as ``openBeneath`` does below `/`.
    package var openFromRoot: @Sendable (_ path: String, _ flags: Int32) throws(Failure) -> Int32
    /// Opens below `directory` and nowhere else, through no symbolic link: openat2 with RESOLVE_BENEATH, RESOLVE_NO_SYMLINKS
    /// and RESOLVE_NO_MAGICLINKS.
    package var openBeneath:
        @Sendable (_ directory: Int32, _ path: String, _ flags: Int32, _ mode: UInt32) throws(Failure) -> Int32
    package var makeDirectory: @Sendable (_ directory: Int32, _ name: String, _ mode: UInt32) throws(Failure) -> Void
    /// Of the name itself, not of what a symbolic link leads to.
    package var status: @Sendable (_ directory: Int32, _ name: String) throws(Failure) -> Status
    package var statusOfOpen: @Sendable (_ file: Int32) throws(Failure) -> Status
    /// Writes all of it.
    package var write: @Sendable (_ file: Int32, _ bytes: UnsafeRawBufferPointer) throws(Failure) -> Void
    /// The same at an offset of its own.
    package var writeAt:
        @Sendable (_ file: Int32, _ offset: Int64, _ bytes: UnsafeRawBufferPointer) throws(Failure) -> Void
    /// Reads from an offset; 0 at the end of the file.
    package var readAt:
        @Sendable (_ file: Int32, _ offset: Int64, _ into: UnsafeMutableRawBufferPointer) throws(Failure) -> Int
    package var truncate: @Sendable (_ file: Int32, _ size: Int64) throws(Failure) -> Void
    package var sync: @Sendable (_ file: Int32) throws(Failure) -> Void
    package var syncData: @Sendable (_ file: Int32) throws(Failure) -> Void
    package var changeOwner: @Sendable (_ file: Int32, _ owner: UInt32) throws(Failure) -> Void
    /// The access list of an open file, or nil where its mode says all.
    package var accessList: @Sendable (_ file: Int32) throws(Failure) -> AccessList?
    /// Gives an open file an access list, or a directory (`asDefault`) the one that new files in it get.
    package var setAccessList: @Sendable (_ file: Int32, _ list: AccessList, _ asDefault: Bool) throws(Failure) -> Void
    /// The groups that a user is in, by the system's databases.
    package var groups: @Sendable (_ user: UInt32) -> Set<UInt32>
    package var changeMode: @Sendable (_ file: Int32, _ mode: UInt32) throws(Failure) -> Void
    /// Renames `name` to `newName`, replacing what is there.
    package var rename: @Sendable (_ directory: Int32, _ name: String, _ newName: String) throws(Failure) -> Void
    /// The same, but fails with EEXIST where there is something already.
    package var renameUnlessExists:
        @Sendable (_ directory: Int32, _ name: String, _ newName: String) throws(Failure) -> Void
    package var unlink: @Sendable (_ directory: Int32, _ name: String) throws(Failure) -> Void
    package var removeDirectory: @Sendable (_ directory: Int32, _ name: String) throws(Failure) -> Void
    package var close: @Sendable (_ file: Int32) -> Void
    /// Bytes that are free, for those who are not root, on the disk of an open file; nil where that is not known.
    package var freeBytes: @Sendable (_ file: Int32) -> Int64?
    /// What changes when the machine restarts and the pages that were not synced are lost.
    package var bootID: String

    /// Writes all of `bytes` behind what was written last.
    package func write(_ bytes: [UInt8], to file: Int32) throws(Failure) {
        try bytes.withUnsafeBufferPointer { (bytes) throws(Failure) in try write(file, UnsafeRawBufferPointer(bytes)) }
    }

    /// Reads from `offset` on until `buffer` is full or the file ends; returns the number of bytes.
    package func fill(_ buffer: UnsafeMutableRawBufferPointer, from file: Int32, at offset: Int64) throws(Errno) -> Int
    {
        var count = 0
        while count < buffer.count {
            let rest = UnsafeMutableRawBufferPointer(rebasing: buffer[count...])
            let read = try readAt(file, offset + Int64(count), rest)
            guard read > 0 else { break }
            count += read
        }
        return count
    }
}
