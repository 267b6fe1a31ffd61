import CLinux
import FoundationEssentials
import Glibc
import JobModel
package import SystemPackage

extension FileOperations {
    /// The flag that opens a name only: to examine a file, or to pass a directory that may not be listed.
    static let pathOnly: Int32 = DEFERD_O_PATH

    /// The status of a name; symbolic links are not followed.
    package func status(_ directory: Int32, _ name: String) throws(Errno) -> Status {
        var found = deferd_status()
        _ = try Self.call { deferd_status(directory, name, &found) }
        return Status(
            identity: Status.Identity(inode: found.inode, createdAt: found.created),
            size: found.size,
            modifiedAt: found.modified, isDirectory: found.mode & S_IFMT == S_IFDIR,
            isRegular: found.mode & S_IFMT == S_IFREG, isSymbolicLink: found.mode & S_IFMT == S_IFLNK,
            links: found.links, owner: found.owner, group: found.group, mode: found.mode & 0o7777)
    }

    func setModified(_ file: Int32, _ time: Timestamp) throws(Errno) {
        let times = [
            timespec(tv_sec: 0, tv_nsec: Self.omitted), timespec(tv_sec: Int(time.milliseconds / 1000), tv_nsec: 0),
        ]
        _ = try Self.call { futimens(file, times) }
    }

    /// UTIME_OMIT, which is not imported.
    private static let omitted = (1 << 30) - 2

    package func statusOfOpen(_ file: Int32) throws(Errno) -> Status { try status(file, "") }

    /// The access list of an open file; nil if its mode says all.
    package func accessList(of file: Int32) throws(Errno) -> AccessList? {
        // More entries than any list that the daemon makes or understands.
        var bytes = [UInt8](repeating: 0, count: 4 + 8 * 512)
        do throws(Errno) {
            let size = try Self.call { deferd_access_list(file, &bytes, bytes.count) }
            guard let list = AccessList(bytes.prefix(size)) else { throw Errno.badMessage }
            return list
        } catch  where [.noData, .notSupported].contains(error) {
            return nil
        }
    }

    func changeOwner(of file: Int32, to owner: UInt32) throws(Errno) {
        _ = try Self.call { fchown(file, owner, gid_t.max) }
    }

    func changeMode(of file: Int32, to mode: UInt32) throws(Errno) { _ = try Self.call { fchmod(file, mode) } }

    func truncate(_ file: Int32, to size: Int64) throws(Errno) { _ = try Self.call { ftruncate(file, off_t(size)) } }

    /// Renames a file, on any file system; fails with EEXIST if the new name exists, unless it is to be replaced.
    func move(_ directory: Int32, _ name: String, _ newName: String, replacing: Bool) throws(Errno) {
        do throws(Errno) {
            try rename(directory, name, newName, replacing)
        } catch  where error == .invalidArgument && !replacing {
            do throws(Errno) {
                // It fails with EEXIST, too.
                try link(directory, name, newName)
            } catch  where [.notPermitted, .noFunction, .notSupported].contains(error) {
                // On a file system without links, a file that has just got this name is replaced.
                return try rename(directory, name, newName, true)
            }
            try unlink(directory, name)
        }
    }

    func removeDirectory(_ directory: Int32, _ name: String) throws(Errno) {
        _ = try Self.call { unlinkat(directory, name, AT_REMOVEDIR) }
    }

    package func close(_ file: Int32) { _ = Glibc.close(file) }

    package func write(_ bytes: [UInt8], to file: Int32, at offset: Int64 = 0) throws(Errno) {
        try bytes.withUnsafeBufferPointer { (bytes) throws(Errno) in
            try writeAt(file, offset, UnsafeRawBufferPointer(bytes))
        }
    }

    /// The free bytes on the disk of an open file for users other than root; nil if they are unknown.
    package func freeBytes(_ file: Int32) -> Int64? { disk(file)?.free }

    /// Reads from `offset` on until `buffer` is full or the file ends; returns the number of bytes.
    package func fill(_ buffer: UnsafeMutableRawBufferPointer, from file: Int32, at offset: Int64) throws(Errno) -> Int
    {
        var count = 0
        while count < buffer.count {
            let read = try readAt(
                file, offset + Int64(count), UnsafeMutableRawBufferPointer(rebasing: buffer[count...]))
            guard read > 0 else { break }
            count += read
        }
        return count
    }

    /// Reads `count` bytes from `offset` on; fewer at the end of the file.
    package func read(_ count: Int, from file: Int32, at offset: Int64) throws(Errno) -> [UInt8] {
        var failure: Errno?
        let bytes = [UInt8](unsafeUninitializedCapacity: count) { buffer, filled in
            let room = UnsafeMutableRawBufferPointer(rebasing: UnsafeMutableRawBufferPointer(buffer)[..<count])
            do throws(Errno) { filled = try fill(room, from: file, at: offset) } catch { failure = error }
        }
        if let failure { throw failure }
        return bytes
    }

    /// Makes a call that returns -1 and sets `errno` when it fails; repeats it if a signal interrupts it.
    static func call<Number: SignedInteger>(_ body: () -> Number) throws(Errno) -> Number {
        while true {
            let result = body()
            if result != -1 { return result }
            let code = errno
            if code != EINTR { throw Errno(rawValue: code) }
        }
    }

    static func open(
        below directory: Int32, _ path: String, _ flags: Int32, _ mode: UInt32
    ) throws(Errno) -> Int32 {
        // EAGAIN: a name on the way changed meanwhile, so the kernel cannot tell whether the path stayed below.
        var attempts = 0
        while true {
            do throws(Errno) {
                return try call { deferd_open_beneath(directory, path, flags | O_CLOEXEC, mode) }
            } catch  where error == .resourceTemporarilyUnavailable && attempts < 16 {
                attempts += 1
            }
        }
    }

    /// The path without symbolic links, as far as it exists. Blocks.
    package static func resolved(_ path: String) -> String { URL(filePath: path).resolvingSymlinksInPath().path }

    /// The kernel's id of the boot, or `DEFERD_BOOT` from a unit that hides it; empty if it is unknown.
    package static let systemBootID: String = {
        let passed = ProcessInfo.processInfo.environment["DEFERD_BOOT"].flatMap { $0.utf8.count < 16 ? nil : $0 }
        let id = passed ?? (try? String(contentsOfFile: "/proc/sys/kernel/random/boot_id", encoding: .utf8))
        return id?.trimmed ?? ""
    }()

    /// Asked anew each time, so that changes of groups apply at once. A user without an entry is in no group.
    @Sendable static func systemGroups(of user: UInt32) -> Set<UInt32> {
        var entry = passwd()
        var found: UnsafeMutablePointer<passwd>?
        var buffer = [CChar](repeating: 0, count: 1 << 16)
        guard getpwuid_r(user, &entry, &buffer, buffer.count, &found) == 0, found != nil else { return [] }
        var groups = [gid_t](repeating: 0, count: 1 << 16)
        var count = Int32(groups.count)
        guard getgrouplist(entry.pw_name, entry.pw_gid, &groups, &count) >= 0 else { return [] }
        return Set(groups.prefix(Int(max(0, count))))
    }
}
