import ArgumentParser
import Foundation

/// For whom the daemon runs, and its default paths.
struct Instance {
    enum Kind: String, CaseIterable, ExpressibleByArgument, Sendable {
        /// Serves every user.
        case system
        /// Serves the user who runs it.
        case user
    }

    /// Whether it serves every user.
    let isSystem: Bool
    let socketPath: String
    let stateDirectory: String
    let downloadsDirectory: String
    /// The configuration file that is read without `--config`, where there is one.
    let configurationFile: String?

    /// The user that the system's instance runs as where it is installed as a service.
    static let serviceUser = "deferd"

    /// What it is where no flag says so: the system's if root or the service's user runs it.
    private static var kind: Kind {
        let isService = getpwnam(serviceUser).map { $0.pointee.pw_uid == geteuid() } ?? false
        return geteuid() == 0 || isService ? .system : .user
    }

    /// `environment` is the process's: as a service systemd names the directories in it, else the user's own are used.
    init(_ kind: Kind?, environment: [String: String]) {
        isSystem = (kind ?? Self.kind) == .system
        func first(_ name: String) -> String? {
            environment[name].flatMap { $0.split(separator: ":").first.map(String.init) }
        }
        let home = environment["HOME"]
        let runtime =
            first("RUNTIME_DIRECTORY")
            ?? (isSystem ? "/run/deferd" : environment["XDG_RUNTIME_DIR"].map { $0 + "/deferd" })
        let state =
            first("STATE_DIRECTORY")
            ?? (isSystem
                ? "/var/lib/deferd"
                : (environment["XDG_STATE_HOME"] ?? home.map { $0 + "/.local/state" }).map { $0 + "/deferd" })
        socketPath = runtime.map { $0 + "/deferd.sock" } ?? ""
        stateDirectory = state ?? ""
        downloadsDirectory =
            isSystem ? stateDirectory + "/downloads" : Self.downloads(environment) ?? stateDirectory + "/downloads"
        let file =
            isSystem
            ? "/etc/deferd/deferd.yaml"
            : (environment["XDG_CONFIG_HOME"] ?? home.map { $0 + "/.config" }).map { $0 + "/deferd/deferd.yaml" }
        configurationFile = file.flatMap { FileManager.default.fileExists(atPath: $0) ? $0 : nil }
    }

    /// The directory that the desktop calls the user's downloads.
    private static func downloads(_ environment: [String: String]) -> String? {
        guard let home = environment["HOME"] else { return nil }
        if let path = environment["XDG_DOWNLOAD_DIR"], path.hasPrefix("/") { return path }
        let file = (environment["XDG_CONFIG_HOME"] ?? home + "/.config") + "/user-dirs.dirs"
        for line in (try? String(contentsOfFile: file, encoding: .utf8))?.split(separator: "\n") ?? []
        where line.hasPrefix("XDG_DOWNLOAD_DIR=") {
            let value = line.dropFirst("XDG_DOWNLOAD_DIR=".count).replacing("\"", with: "")
            let path = String(value.replacing("$HOME", with: home))
            if path.hasPrefix("/") { return path }
        }
        return home + "/Downloads"
    }
}
