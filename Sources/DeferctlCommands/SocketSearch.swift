import FoundationEssentials
import Glibc

/// The search for the daemon's socket.
struct SocketSearch: Sendable {
    static let systemPath = "/run/deferd/deferd.sock"

    private static let longestPath = 107

    private let environment: [String: String]
    private let isRoot: Bool
    private let exists: @Sendable (String) -> Bool

    init(
        environment: [String: String] = ProcessInfo.processInfo.environment, isRoot: Bool = geteuid() == 0,
        exists: @escaping @Sendable (String) -> Bool = { access($0, F_OK) == 0 }
    ) {
        self.environment = environment
        self.isRoot = isRoot
        self.exists = exists
    }

    func path(flag: String?) throws(CommandFailure) -> String { try location(flag: flag).path }

    /// The path, and how it was found: by the flag, by `DEFERD_SOCKET`, or as the user's own or the system's daemon.
    func location(flag: String?) throws(CommandFailure) -> (path: String, origin: String) {
        if let flag { return (try checked(flag, from: "--socket", .usage), "set by --socket") }
        if let path = environment["DEFERD_SOCKET"], !path.isEmpty {
            return (try checked(path, from: "DEFERD_SOCKET", .configuration), "set by DEFERD_SOCKET")
        }
        if let own = ownPath, exists(own) {
            return (try checked(own, from: "XDG_RUNTIME_DIR", .configuration), "of your own daemon")
        }
        return (Self.systemPath, "of the system's daemon, because you have none of your own")
    }

    private var ownPath: String? {
        guard let directory = environment["XDG_RUNTIME_DIR"], directory.hasPrefix("/") else { return nil }
        return directory + "/deferd/deferd.sock"
    }

    /// How to start the daemon that listens at `path`.
    func startHint(for path: String) -> String {
        switch isUserUnit(for: path) {
        case false? where isRoot: "Start it with: systemctl start deferd"
        case false?:
            "Start one of your own with: systemctl --user start deferd, or: deferd & (the system's is for administrators "
                + "to start, with: systemctl start deferd)"
        case true?: "Start it with: systemctl --user start deferd, or: deferd &"
        case nil: "Start it with: deferd --socket \(path)"
        }
    }

    /// Whether the systemd unit for `path` is a user's; nil if there is no unit for it.
    func isUserUnit(for path: String) -> Bool? {
        path == Self.systemPath ? false : path == ownPath ? true : nil
    }

    private func checked(_ path: String, from origin: String, _ status: ExitStatus) throws(CommandFailure) -> String {
        guard !path.isEmpty else { throw CommandFailure(status, "\(origin) is empty; name the daemon's socket.") }
        guard path.utf8.count <= Self.longestPath else {
            throw CommandFailure(
                status,
                "The path in \(origin) is longer than \(Self.longestPath) bytes, the limit for a socket; choose a shorter "
                    + "one than \(path)")
        }
        return path
    }
}
