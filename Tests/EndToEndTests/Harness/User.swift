import Foundation
import Glibc
import Testing

/// Another user of the machine, whose programs root can run.
struct User: Sendable {
    let uid: uid_t
    /// The groups of the user's programs, the first of them the primary one.
    var groups: [gid_t]

    /// Users without an entry in any file, as the kernel needs none.
    static let ann = User(uid: 64_001, groups: [64_001])
    static let bob = User(uid: 64_002, groups: [64_002])

    /// Whether programs can be run as others here.
    static let canBeOthers =
        geteuid() == 0 && Files.exists("/usr/bin/setpriv") && Files.exists("/usr/bin/socat")

    /// The command line that runs `arguments` as this user.
    func command(_ arguments: [String]) -> [String] {
        let others = groups.dropFirst().map(String.init).joined(separator: ",")
        return [
            "/usr/bin/setpriv", "--reuid", "\(uid)", "--regid", "\(groups[0])",
            others.isEmpty ? "--clear-groups" : "--groups=\(others)",
        ] + arguments
    }

    /// A connection of this user's, made by a program of theirs.
    func connect(to daemon: Daemon) throws -> Wire {
        var ends: [Int32] = [0, 0]
        try #require(
            socketpair(AF_UNIX, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0, &ends) == 0)
        let theirs = FileDescriptor(number: ends[1])
        defer { theirs.close() }
        _ = try ChildProcess(
            command(["/usr/bin/socat", "-t60", "STDIO", "UNIX-CONNECT:\(daemon.socket)"]), socket: theirs)
        return Wire(through: FileDescriptor(number: ends[0]))
    }
}
