import ArgumentParser
import FoundationEssentials
import Glibc

/// The kind of instance, and its default paths.
struct Instance {
    enum Kind: String, CaseIterable, ExpressibleByArgument, Sendable {
        case system, user
    }

    /// Whether it serves all users.
    let isSystem: Bool
    let socketPath: String
    let stateDirectory: String
    let downloadsDirectory: String
    /// The configuration file without `--config`, if it exists.
    let configurationFile: String?

    /// The kind without a flag: `system` for root and the service's user.
    private static var kind: Kind {
        let isService = getpwnam("deferd").map { $0.pointee.pw_uid == geteuid() } ?? false
        return geteuid() == 0 || isService ? .system : .user
    }

    /// For a service, systemd passes directories in `environment`.
    init(_ kind: Kind?, environment: [String: String]) {
        isSystem = (kind ?? Self.kind) == .system
        // An empty variable counts as unset, as the XDG specification has it.
        let environment = environment.filter { !$0.value.isEmpty }
        func first(_ name: String) -> String? {
            environment[name].flatMap { $0.split(separator: ":").first.map(String.init) }
        }
        /// The user's directory in the variable, or else below the home directory.
        func own(_ variable: String, _ below: String) -> String? {
            environment[variable] ?? environment["HOME"].map { $0 + below }
        }
        let runtime =
            first("RUNTIME_DIRECTORY")
            ?? (isSystem ? "/run/deferd" : environment["XDG_RUNTIME_DIR"].map { $0 + "/deferd" })
        let state =
            first("STATE_DIRECTORY")
            ?? (isSystem ? "/var/lib/deferd" : own("XDG_STATE_HOME", "/.local/state").map { $0 + "/deferd" })
        socketPath = runtime.map { $0 + "/deferd.sock" } ?? ""
        stateDirectory = state ?? ""
        let config = own("XDG_CONFIG_HOME", "/.config")
        downloadsDirectory =
            (isSystem ? nil : Self.downloads(environment, config ?? "")) ?? stateDirectory + "/downloads"
        let file = isSystem ? "/etc/deferd/deferd.yaml" : config.map { $0 + "/deferd/deferd.yaml" }
        configurationFile = file.flatMap { FileManager.default.fileExists(atPath: $0) ? $0 : nil }
    }

    /// The user's downloads directory, as the desktop knows it.
    private static func downloads(_ environment: [String: String], _ config: String) -> String? {
        guard let home = environment["HOME"] else { return nil }
        if let path = environment["XDG_DOWNLOAD_DIR"], path.hasPrefix("/") { return path }
        let text = try? String(contentsOfFile: config + "/user-dirs.dirs", encoding: .utf8)
        for line in text?.split(separator: "\n") ?? [] where line.hasPrefix("XDG_DOWNLOAD_DIR=") {
            let value = line.dropFirst("XDG_DOWNLOAD_DIR=".count).replacing("\"", with: "")
            let path = String(value.replacing("$HOME", with: home))
            if path.hasPrefix("/") { return path }
        }
        return home + "/Downloads"
    }
}
