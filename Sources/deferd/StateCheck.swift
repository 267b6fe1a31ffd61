import Glibc
import JobModel
import JobStore

/// `deferd --verify-state`: says whether a state or a backup is whole.
enum StateCheck {
    static func run(_ path: String) throws {
        try becomeOwner(of: path)
        let found = try StateVerification(of: path)
        guard found.flaws.isEmpty else {
            for flaw in found.flaws { print(flaw) }
            throw Daemon.StartError(
                code: .badData,
                message: "The state in \(found.database) is not whole: "
                    + (found.flaws.count == 1 ? "1 flaw; " : "\(found.flaws.count) flaws; ")
                    + "restore a backup, as deferd(8) says.")
        }
        print("The state in \(found.database) is whole: \(found.jobs) jobs, \(found.bytes) bytes.")
    }

    /// Root acts as the owner, so that the index which SQLite creates beside a log belongs to the owner too.
    private static func becomeOwner(of path: String) throws {
        var status = stat()
        guard geteuid() == 0, stat(path, &status) == 0, status.st_uid != 0 else { return }
        guard setgroups(0, nil) == 0, setgid(status.st_gid) == 0, setuid(status.st_uid) == 0 else {
            throw Daemon.StartError(
                code: .tryAgain,
                message: "The check cannot become user \(status.st_uid), the owner of \(path); run it as that user.")
        }
    }
}
