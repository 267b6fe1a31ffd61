import FoundationEssentials
import Glibc

/// Finds the daemon's socket.
struct SocketSearch: Sendable {
    /// Where a daemon of the whole system listens.
    static let systemPath = "/run/deferd/deferd.sock"

    /// The most bytes that the path of a Unix socket may have.
    private static let longestPath = 107

    private let environment: [String: String]
    private let exists: @Sendable (String) -> Bool

    /// A search with these variables, those of this process by default, among the files that `exists` knows.
    init(
        environment: [String: String] = ProcessInfo.processInfo.environment,
        exists: @escaping @Sendable (String) -> Bool = { access($0, F_OK) == 0 }
    ) {
        self.environment = environment
        self.exists = exists
    }

    /// The path named by the flag, by `DEFERD_SOCKET`, of the user's own daemon if there is one, or the system's.
    func path(flag: String?) throws(CommandFailure) -> String { try location(flag: flag).path }

    /// The path, and how it was found.
    func location(flag: String?) throws(CommandFailure) -> (path: String, origin: String) {
        if let flag { return (try checked(flag, from: "--socket", .usage), "named by --socket") }
        if let path = environment["DEFERD_SOCKET"], !path.isEmpty {
            return (try checked(path, from: "DEFERD_SOCKET", .configuration), "named by DEFERD_SOCKET")
        }
        if let own = ownPath, exists(own) {
            return (try checked(own, from: "XDG_RUNTIME_DIR", .configuration), "your own daemon's")
        }
        return (Self.systemPath, "the system's, as you have no daemon of your own")
    }

    /// Where the user's own daemon listens.
    var ownPath: String? {
        guard let directory = environment["XDG_RUNTIME_DIR"], directory.hasPrefix("/") else { return nil }
        return directory + "/deferd/deferd.sock"
    }

    /// How to start the daemon that listens at `path`.
    func startHint(for path: String) -> String {
        if path == Self.systemPath { return "Start it with: systemctl start deferd" }
        if path == ownPath { return "Start it with: systemctl --user start deferd, or: deferd &" }
        return "Start it with: deferd --socket \(path)"
    }

    /// The daemon's unit under systemd, where the path is that of one: whether it is a unit of the user's.
    func isUserUnit(for path: String) -> Bool? {
        path == Self.systemPath ? false : path == ownPath ? true : nil
    }

    private func checked(_ path: String, from origin: String, _ status: ExitStatus) throws(CommandFailure) -> String {
        guard !path.isEmpty else { throw CommandFailure(status, "\(origin) is empty; name the daemon's socket.") }
        guard path.utf8.count <= Self.longestPath else {
            throw CommandFailure(
                status,
                "The path from \(origin) is longer than the \(Self.longestPath) bytes that a socket's path may have; name a "
                    + "shorter one than \(path)")
        }
        return path
    }
}
