import Glibc

/// What systemd says of the daemon's units.
struct ServiceUnits: Sendable {
    /// What `systemctl show` is asked for.
    static let asked =
        "--property=Id,LoadState,ActiveState,SubState,Result,NRestarts deferd.service deferd.socket"

    /// By the unit's name; only units that are there.
    let units: [String: [String: String]]
    let isUser: Bool

    /// Reads what `systemctl show` printed of several units: lines of properties, with an empty one between units.
    init(showing output: String, isUser: Bool) {
        var units: [String: [String: String]] = [:]
        var unit: [String: String] = [:]
        for line in (output + "\n\n").split(separator: "\n", omittingEmptySubsequences: false) {
            if let mark = line.firstIndex(of: "=") {
                unit[String(line[..<mark])] = String(line[line.index(after: mark)...])
            } else if line.isEmpty {
                if let id = unit["Id"], unit["LoadState"] != "not-found" { units[id] = unit }
                unit = [:]
            }
        }
        self.units = units
        self.isUser = isUser
    }

    private var flag: String { isUser ? "--user " : "" }

    /// How the units are, for a daemon that answers or does not.
    func finding(isReachable: Bool) -> Finding {
        guard let service = units["deferd.service"] else {
            return Finding("systemd", .note, "There is no \(isUser ? "user " : "")unit deferd.service here.")
        }
        let state = [service["ActiveState"], service["SubState"]].compactMap(\.self).joined(separator: ", ")
        let journal = "journalctl \(flag)-u deferd -n 20"
        if let wrong = service["LoadState"], ["error", "bad-setting", "masked"].contains(wrong) {
            return Finding(
                "systemd", .error, "deferd.service cannot be loaded: \(wrong).", next: "systemctl \(flag)status deferd")
        }
        switch service["ActiveState"] {
        case "failed":
            return Finding(
                "systemd", isReachable ? .warning : .error,
                "deferd.service has failed (\(service["Result"] ?? "unknown")).",
                next: "See why with: \(journal); then: systemctl \(flag)restart deferd")
        case "active", "reloading", "activating", "deactivating":
            guard let restarts = service["NRestarts"].flatMap(Int.init), restarts > 0 else {
                return Finding("systemd", .ok, "deferd.service is \(state).")
            }
            return Finding(
                "systemd", .warning,
                "deferd.service is \(state), and was restarted \(restarts) times since it was started.",
                next: "See why with: \(journal)")
        default:
            let socket = units["deferd.socket"]?["ActiveState"] == "active"
            return Finding(
                "systemd", isReachable || socket ? .note : .error,
                "deferd.service is \(state)" + (socket ? "; deferd.socket starts it with the next connection." : "."),
                next: isReachable
                    ? "The daemon that answers was started by something else."
                    : socket ? nil : "systemctl \(flag)enable --now deferd.socket")
        }
    }
}

/// Runs a program of the system for what it prints.
enum ProgramOutput {
    /// What `command`, a command of the shell without quotes, prints within `seconds`; nil where it cannot be started, takes
    /// longer, or fails. It gets no input, and what it says on standard error is left out.
    static func read(_ command: String, seconds: Double = 3) -> String? {
        guard let stream = popen("exec timeout -s KILL \(seconds) \(command) </dev/null 2>/dev/null", "re") else {
            return nil
        }
        var bytes = [UInt8](repeating: 0, count: 64 << 10)
        let count = fread(&bytes, 1, bytes.count, stream)
        return pclose(stream) == 0 ? String(decoding: bytes[..<count], as: UTF8.self) : nil
    }
}
