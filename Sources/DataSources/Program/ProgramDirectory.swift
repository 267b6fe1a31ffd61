import CLinux
import Glibc
import JobModel
import SystemPackage

/// The directory in which programs get their own directories. All calls block.
enum ProgramDirectory {
    /// The file in it on which the program guard holds a lock.
    static let lock = "lock"

    /// Makes the directory, private to the daemon, and opens its lock.
    static func open(_ path: String) throws(Errno) -> Int32 {
        if mkdir(path, 0o700) != 0, errno != EEXIST { throw Errno(rawValue: errno) }
        let directory = try openDirectory(path)
        defer { close(directory) }
        _ = try FileOperations.call { fchmod(directory, 0o700) }
        return try FileOperations.call { openat(directory, lock, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0o600) }
    }

    private static func openDirectory(_ path: String, in above: Int32 = AT_FDCWD) throws(Errno) -> Int32 {
        try FileOperations.call { openat(above, path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC) }
    }

    /// The names of everything except for the lock.
    static func remains(in path: String) -> [String] {
        guard let directory = opendir(path) else { return [] }
        defer { closedir(directory) }
        var names: [String] = []
        while let entry = readdir(directory) {
            let name = String(cString: deferd_entry_name(entry))
            if name != ".", name != "..", name != lock { names.append(name) }
        }
        return names
    }

    /// Removes `name` with its contents.
    ///
    /// A directory inside is moved up before it is emptied, so neither recursion nor paths get deep.
    static func remove(_ name: String, in path: String) throws(Errno) {
        // Most programs leave their directory empty.
        if rmdir("\(path)/\(name)") == 0 || errno == ENOENT { return }
        let above = try openDirectory(path)
        defer { close(above) }
        var left = [name]
        var count = 0
        while let next = left.popLast() {
            if unlinkat(above, next, 0) == 0 || errno == ENOENT { continue }
            // A program may have changed the mode of its directories.
            fchmodat(above, next, 0o700, 0)
            let descriptor = try openDirectory(next, in: above)
            guard let directory = fdopendir(descriptor) else { throw Errno(rawValue: errno) }
            defer { closedir(directory) }
            var failure: Errno?
            while let entry = readdir(directory) {
                // Not as a String: names need not be UTF-8.
                guard let inside = deferd_entry_name(entry), strcmp(inside, ".") != 0, strcmp(inside, "..") != 0
                else { continue }
                if unlinkat(descriptor, inside, 0) == 0 || unlinkat(descriptor, inside, AT_REMOVEDIR) == 0 { continue }
                fchmodat(descriptor, inside, 0o700, 0)
                count += 1
                let moved = "\(name)-\(count)"
                if renameat(descriptor, inside, above, moved) == 0 {
                    left.append(moved)
                } else {
                    failure = Errno(rawValue: errno)
                }
            }
            if unlinkat(above, next, AT_REMOVEDIR) != 0, errno != ENOENT { throw failure ?? Errno(rawValue: errno) }
        }
    }
}
