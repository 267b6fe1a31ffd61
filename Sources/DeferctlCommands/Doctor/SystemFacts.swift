import ArgumentParser
import Glibc
import JobModel
import Synchronization

/// The group that may connect to a socket, besides its owner.
enum SocketGroup {
    /// The group's name; nil if it may not connect.
    static func name(at path: String) -> String? {
        var facts = stat()
        guard stat(path, &facts) == 0, facts.st_mode & S_IWGRP != 0 else { return nil }
        return getgrgid(facts.st_gid).map { String(cString: $0.pointee.gr_name) } ?? String(facts.st_gid)
    }

    /// The next step for a user who may not connect.
    static func nextForDenied(_ user: String, group: String?) -> String {
        switch group {
        case nil: "Only its owner may use it; ask for a daemon whose socket belongs to a group of yours."
        // Membership in root's group would give far more than this.
        case "root"?: "Its group is root: ask an administrator to set socket.group in the daemon's configuration."
        case let group?:
            "An administrator can add you with: adduser \(user) \(group). Then, or if you have joined the group since you "
                + "logged in, log in again."
        }
    }
}

enum Accounts {
    private static let names = Mutex<[uid_t: String]>([:])

    /// The name is remembered, because the look-up may ask a server.
    static func userName(_ uid: uid_t) -> String {
        names.withLock { names in
            let name = names[uid] ?? getpwuid(uid).map { String(cString: $0.pointee.pw_name) } ?? String(uid)
            names[uid] = name
            return name
        }
    }

    static func name(_ owner: JSON) -> String { owner.int.flatMap(uid_t.init(exactly:)).map(userName)?.sanitized ?? "" }

    /// The user whose name or number was given.
    static func uid(_ text: String) throws(ValidationError) -> uid_t {
        guard let uid = uid_t(text) ?? getpwnam(text)?.pointee.pw_uid else {
            throw ValidationError("it must be a user's name or number.")
        }
        return uid
    }
}

/// What systemd says about the daemon's units.
struct ServiceUnits: Sendable {
    /// Settings that programs of jobs inherit, and their harmless values.
    private static let inherited = [
        "MemoryDenyWriteExecute": "no", "NoNewPrivileges": "no", "RestrictNamespaces": "no", "MemoryMax": "infinity",
    ]

    static func findings(isUser: Bool, isReachable: Bool) -> [Finding?] {
        let properties =
            "Id,LoadState,ActiveState,SubState,Result,NRestarts," + inherited.keys.sorted().joined(separator: ",")
        let command = "systemctl \(isUser ? "--user " : "")show --property=\(properties) deferd.service deferd.socket"
        guard let output = ProgramOutput.read(command) else {
            return [Finding("systemd", .note, "systemctl does not answer; the daemon is not run by systemd here.")]
        }
        let units = ServiceUnits(showing: output, isUser: isUser)
        return [units.finding(isReachable: isReachable), units.hardening]
    }

    private let units: [String: [String: String]]
    private let isUser: Bool
    private var flag: String { isUser ? "--user " : "" }

    /// Reads the output of `systemctl show`: lines of properties, with an empty line between units.
    init(showing output: String, isUser: Bool) {
        var units: [String: [String: String]] = [:]
        for text in output.split(separator: "\n\n") {
            let unit = text.split(separator: "\n").reduce(into: [String: String]()) { unit, line in
                let parts = line.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
                if parts.count == 2 { unit[String(parts[0])] = String(parts[1]) }
            }
            if let id = unit["Id"], unit["LoadState"] != "not-found" { units[id] = unit }
        }
        (self.units, self.isUser) = (units, isUser)
    }

    /// The settings of a user's unit that the user's programs have in the daemon, but not in a shell.
    var hardening: Finding? {
        let set = Self.inherited.filter { name, usual in units["deferd.service"]?[name].map { $0 != usual } ?? false }
        guard isUser, !set.isEmpty else { return nil }
        return Finding(
            "systemd", .warning,
            "deferd.service sets \(set.keys.sorted().joined(separator: ", ")), which programs run by jobs inherit; some "
                + "fail by it.",
            next: "Take it out with: systemctl --user edit deferd")
    }

    func finding(isReachable: Bool) -> Finding {
        guard let service = units["deferd.service"] else {
            return Finding("systemd", .note, "There is no \(isUser ? "user unit" : "unit") deferd.service here.")
        }
        let state = [service["ActiveState"], service["SubState"]].compactMap(\.self).joined(separator: ", ")
        let journal = "See why with: journalctl \(flag)-u deferd -n 20"
        if let wrong = service["LoadState"], wrong != "loaded" {
            return Finding(
                "systemd", .error, "deferd.service cannot be loaded: \(wrong).", next: "systemctl \(flag)status deferd")
        }
        switch service["ActiveState"] {
        case "failed":
            return Finding(
                "systemd", isReachable ? .warning : .error,
                "deferd.service has failed (\(service["Result"] ?? "unknown")).",
                next: "\(journal); then: systemctl \(flag)restart deferd")
        case "inactive":
            let socket = units["deferd.socket"]?["ActiveState"] == "active"
            return Finding(
                "systemd", isReachable || socket ? .note : .error,
                "deferd.service is \(state)" + (socket ? "; deferd.socket starts it with the next connection." : "."),
                next: isReachable
                    ? "Something else started the daemon that answers."
                    : socket ? nil : "systemctl \(flag)enable --now deferd.socket")
        default:
            let restarts = service["NRestarts"].flatMap(Int.init) ?? 0
            return Finding(
                "systemd", restarts > 0 ? .warning : .ok,
                "deferd.service is \(state)"
                    + (restarts > 0 ? ", and systemd has restarted it \(restarts) times." : "."),
                next: restarts > 0 ? journal : nil)
        }
    }
}

enum ProgramOutput {
    /// The output of `command`, a shell command without quotes; nil if it cannot be started, fails, or takes longer than
    /// `seconds`. Its standard error is ignored.
    static func read(_ command: String, seconds: Double = 3) -> String? {
        guard let stream = popen("exec timeout -s KILL \(seconds) \(command) </dev/null 2>/dev/null", "re") else {
            return nil
        }
        var bytes = [UInt8](repeating: 0, count: 64 << 10)
        let count = fread(&bytes, 1, bytes.count, stream)
        return pclose(stream) == 0 ? String(decoding: bytes[..<count], as: UTF8.self) : nil
    }
}
