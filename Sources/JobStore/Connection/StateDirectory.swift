import SystemPackage
package import JobModel
import Glibc

/// The directory of the database, locked for one daemon. The kernel's lock ends with the process, however that ends.
///
/// The lock's file records clean stops, in room that it has from the start, so that one on a full disk does not look like
/// a crash.
package final class StateDirectory: Sendable {
    package let path: String
    /// The last life that ended cleanly; 0 if none did.
    let lastCleanLife: Int64
    /// The open lock file.
    private let lock: Int32

    var database: String { path + "/deferd.db" }
    /// The engine's files for values that are too long for a row. It may be on another disk.
    package var blobs: String { path + "/bodies" }
    /// A copy of the state that is being made, and becomes one of these files.
    var backup: String { blobs + "/deferd.backup" }

    /// Makes the directory if it is missing, and locks it.
    package init(_ path: String) throws(StoreError) {
        self.path = path
        try Self.make(path)
        let file = path + "/deferd.lock"
        lock = open(file, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0o600)
        guard lock >= 0 else { throw StoreError.unwritable(file) }
        guard flock(lock, LOCK_EX | LOCK_NB) == 0 else {
            let failure =
                errno == EWOULDBLOCK
                ? StoreError(
                    .locked,
                    "The state directory \(path) is in use by another deferd; end that one or name another directory.")
                : StoreError.unwritable(file)
            Glibc.close(lock)
            throw failure
        }
        var life: Int64 = 0
        let count = pread(lock, &life, 8, 0)
        lastCleanLife = count == 8 ? Int64(littleEndian: life) : 0
        if count < 8 { recordCleanStop(of: 0) }
    }

    deinit {
        unlock()
        Glibc.close(lock)
    }

    /// Records the end of a life. Without the record, it counts as a crash.
    func recordCleanStop(of life: Int64) {
        var life = life.littleEndian
        _ = pwrite(lock, &life, 8, 0)
        fsync(lock)
    }

    /// Lets another daemon use the directory, even while a program that is being started shares the open file.
    package func unlock() { flock(lock, LOCK_UN) }

    /// Makes a directory and its missing parents, for the owner only.
    private static func make(_ path: String) throws(StoreError) {
        var status = stat()
        if stat(path, &status) == 0 {
            guard status.st_mode & S_IFMT == S_IFDIR else {
                throw StoreError(
                    .write, "The state directory \(path) is not a directory; name another or move the file away.",
                    isLasting: true)
            }
            return
        }
        if errno == ENOENT, let slash = path.dropFirst().lastIndex(of: "/") { try make(String(path[..<slash])) }
        guard mkdir(path, 0o700) == 0 || errno == EEXIST else {
            throw StoreError(
                .write,
                "The state directory \(path) cannot be made (\(Errno(rawValue: errno))); make it or name another.",
                isLasting: StoreError.isLasting(errno))
        }
        // A parent that may not be read cannot be synced.
        _ = sync(directoryOf: path)
    }

    /// Creates an empty file, for the owner only, in place of what a killed daemon left of a database.
    static func createFile(_ path: String) throws(StoreError) {
        removeDatabase(path)
        let file = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0o600)
        guard file >= 0 else { throw StoreError.unwritable(path) }
        Glibc.close(file)
    }

    /// Removes a database and the files that SQLite makes beside it.
    static func removeDatabase(_ path: String) {
        for ending in ["", "-journal", "-wal", "-shm"] { unlink(path + ending) }
    }

    /// Bytes of the file at `path`; 0 if there is none.
    static func size(_ path: String) -> Int64 {
        var status = stat()
        return stat(path, &status) == 0 ? Int64(status.st_size) : 0
    }

    static func sync(directoryOf path: String) -> Bool {
        sync(path.lastIndex(of: "/").map { String(path[...$0]) } ?? ".")
    }

    static func sync(_ path: String) -> Bool {
        let file = open(path, O_RDONLY | O_CLOEXEC)
        guard file >= 0 else { return false }
        defer { Glibc.close(file) }
        return fsync(file) == 0
    }
}
