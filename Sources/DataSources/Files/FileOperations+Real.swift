import SystemPackage
import CLinux
import Glibc

extension FileOperations {
    /// The flag that opens no more than the name of a file: to look at it, or to pass a directory that may not be listed.
    static let pathOnly: Int32 = DEFERD_O_PATH

    /// The system's own calls.
    package static let real = FileOperations(
        openDirectory: { path throws(Errno) in try call { Glibc.open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC) } },
        openFromRoot: { path, flags throws(Errno) in
            let root = try call { Glibc.open("/", pathOnly | O_DIRECTORY | O_CLOEXEC) }
            defer { _ = Glibc.close(root) }
            let below = path.drop { $0 == "/" }
            return try open(below: root, below.isEmpty ? "." : String(below), flags | O_DIRECTORY, 0)
        },
        openBeneath: { directory, path, flags, mode throws(Errno) in
            try open(below: directory, path, flags, mode)
        },
        makeDirectory: { directory, name, mode throws(Errno) in _ = try call { mkdirat(directory, name, mode) } },
        status: { directory, name throws(Errno) in try status(of: name, in: directory) },
        statusOfOpen: { file throws(Errno) in try status(of: "", in: file) },
        write: { file, bytes throws(Errno) in
            var rest = bytes[...]
            while !rest.isEmpty {
                let piece = UnsafeRawBufferPointer(rebasing: rest)
                let count = try call { Glibc.write(file, piece.baseAddress, piece.count) }
                // Only a broken file system takes nothing without saying why.
                guard count > 0 else { throw Errno.ioError }
                rest = rest.dropFirst(count)
            }
        },
        writeAt: { file, offset, bytes throws(Errno) in
            var count = 0
            while count < bytes.count {
                let piece = UnsafeRawBufferPointer(rebasing: bytes[count...])
                let written = try call { pwrite(file, piece.baseAddress, piece.count, off_t(offset) + off_t(count)) }
                guard written > 0 else { throw Errno.ioError }
                count += written
            }
        },
        readAt: { file, offset, buffer throws(Errno) in
            try call { pread(file, buffer.baseAddress, buffer.count, off_t(offset)) }
        },
        truncate: { file, size throws(Errno) in _ = try call { ftruncate(file, off_t(size)) } },
        sync: { file throws(Errno) in _ = try call { fsync(file) } },
        syncData: { file throws(Errno) in _ = try call { fdatasync(file) } },
        changeOwner: { file, owner throws(Errno) in _ = try call { fchown(file, owner, gid_t.max) } },
        accessList: { file throws(Errno) in
            // More entries than any list that the daemon makes or understands needs.
            var bytes = [UInt8](repeating: 0, count: 4 + 8 * 512)
            do throws(Errno) {
                let size = try call { deferd_access_list(file, &bytes, bytes.count) }
                guard let list = AccessList(bytes.prefix(size)) else { throw Errno.badMessage }
                return list
            } catch  where [.noData, .notSupported].contains(error) {
                return nil
            }
        },
        setAccessList: { file, list, asDefault throws(Errno) in
            let bytes = list.bytes
            _ = try call { deferd_set_access_list(file, asDefault ? 1 : 0, bytes, bytes.count) }
        },
        groups: systemGroups,
        changeMode: { file, mode throws(Errno) in _ = try call { fchmod(file, mode) } },
        rename: { directory, name, newName throws(Errno) in
            _ = try call { renameat(directory, name, directory, newName) }
        },
        renameUnlessExists: { directory, name, newName throws(Errno) in
            do throws(Errno) {
                _ = try call { deferd_rename_unless_exists(directory, name, newName) }
            } catch  where error == .invalidArgument {
                // A file system without that flag; a link fails in the same way where there is something.
                _ = try call { linkat(directory, name, directory, newName, 0) }
                _ = try call { unlinkat(directory, name, 0) }
            }
        },
        unlink: { directory, name throws(Errno) in _ = try call { unlinkat(directory, name, 0) } },
        removeDirectory: { directory, name throws(Errno) in
            _ = try call { unlinkat(directory, name, AT_REMOVEDIR) }
        },
        close: { file in _ = Glibc.close(file) },
        freeBytes: { file in
            var status = statvfs()
            guard fstatvfs(file, &status) == 0 else { return nil }
            let (bytes, isTooMuch) = Int64(clamping: status.f_bavail)
                .multipliedReportingOverflow(by: Int64(clamping: status.f_frsize))
            return isTooMuch ? .max : bytes
        },
        bootID: String(cString: deferd_boot_id()))

    /// The result of a call that gives -1 and sets `errno` when it fails; one that a signal interrupted is made again.
    private static func call<Number: SignedInteger>(_ body: () -> Number) throws(Errno) -> Number {
        while true {
            let result = body()
            if result != -1 { return result }
            let code = errno
            if code != EINTR { throw Errno(rawValue: code) }
        }
    }

    private static func open(
        below directory: Int32, _ path: String, _ flags: Int32, _ mode: UInt32
    ) throws(Errno) -> Int32 {
        // EAGAIN: something on the way was renamed meanwhile, so the kernel cannot tell whether it stayed below.
        var attempts = 0
        while true {
            do throws(Errno) {
                return try call { deferd_open_beneath(directory, path, flags | O_CLOEXEC, mode) }
            } catch  where error == .resourceTemporarilyUnavailable && attempts < 16 {
                attempts += 1
            }
        }
    }

    /// The path without symbolic links, as far as it exists now. Blocks.
    package static func resolved(_ path: String) -> String {
        var existing = path[...]
        while true {
            if let found = realpath(existing.isEmpty ? "/" : String(existing), nil) {
                defer { free(found) }
                let rest = path[existing.endIndex...].drop { $0 == "/" }
                let above = String(cString: found)
                return rest.isEmpty ? above : (above == "/" ? "" : above) + "/" + rest
            }
            guard let slash = existing.lastIndex(of: "/") else { return path }
            existing = existing[..<slash]
        }
    }

    /// Asked anew each time: what a user was put into or taken out of holds at once.
    private static func systemGroups(of user: UInt32) -> Set<UInt32> {
        var entry = passwd()
        var found: UnsafeMutablePointer<passwd>?
        var buffer = [CChar](repeating: 0, count: 1 << 16)
        // Somebody without an entry is in no group.
        guard getpwuid_r(user, &entry, &buffer, buffer.count, &found) == 0, found != nil else { return [] }
        var groups = [gid_t](repeating: 0, count: 256)
        while true {
            var count = Int32(groups.count)
            if getgrouplist(entry.pw_name, entry.pw_gid, &groups, &count) >= 0 {
                return Set(groups.prefix(Int(max(0, count))))
            }
            guard groups.count < 65_536 else { return [] }
            groups = [gid_t](repeating: 0, count: groups.count * 4)
        }
    }

    private static func status(of name: String, in directory: Int32) throws(Errno) -> Status {
        var found = deferd_status()
        _ = try call { deferd_status(directory, name, &found) }
        return Status(
            identity: Status.Identity(device: found.device, inode: found.inode, createdAt: found.created),
            size: found.size,
            modifiedAt: found.modified, isDirectory: found.mode & S_IFMT == S_IFDIR,
            isRegular: found.mode & S_IFMT == S_IFREG, links: found.links, owner: found.owner,
            group: found.group, mode: found.mode & 0o7777)
    }
}
