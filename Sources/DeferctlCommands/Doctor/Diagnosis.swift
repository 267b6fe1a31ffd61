import Glibc
import JobClient
import JobModel

/// The findings in a daemon's answers, for which ``DoctorCommand`` asks.
enum Diagnosis {
    /// The part of a limit from which it counts as almost full.
    private static let full = 0.9
    static let mostFailures = 3

    /// The daemon, and the caller as the daemon sees it.
    static func identity(_ info: JSON, client: String, user: String) -> [Finding] {
        let version = info["version"]?.string ?? "of an unknown version"
        let what = [
            "\(info["name"]?.string ?? "deferd") \(version)", "protocol \(info.number("protocol"))",
            info["pid"]?.int.map { "process \($0)" },
            info.time("startedAt").map { "since \(Quantities.time($0)) \(Quantities.zone($0))" },
        ].compactMap(\.self).joined(separator: ", ")
        let next = "They work together. After an upgrade, restart the daemon: \(systemctl(info)) restart deferd"
        let rights =
            isAdmin(info)
            ? "an administrator: you see and change all users' jobs." : "and see and change your own jobs."
        return [
            Finding(
                "daemon", version == client ? .ok : .note, "\(what); this is deferctl \(client).",
                next: version == client ? nil : next),
            Finding("you", .ok, "You are \(user), \(rights)"),
        ]
    }

    private static func systemctl(_ info: JSON) -> String {
        info["instance"] == "user" ? "systemctl --user" : "systemctl"
    }

    private static func isAdmin(_ info: JSON) -> Bool { info["you"]?["admin"]?.bool == true }

    /// Whether the daemon's present configuration is the one in its file.
    static func configuration(_ info: JSON) -> Finding? {
        guard let refused = info["configuration"]?["refused"]?.string else { return nil }
        let when = info["configuration"]?.time("at").map { " at \(Quantities.time($0))" } ?? ""
        return Finding(
            "config", .warning, "The daemon could not read its changed configuration\(when): \(refused)",
            next: "Check the file with: deferd --check; repair it, and reload it: \(systemctl(info)) reload deferd")
    }

    /// Whether schedules and times are right, by the output of `timedatectl show`; it needs systemd.
    static func clock(_ output: String?) -> Finding? {
        guard output?.contains("NTPSynchronized=no") == true else { return nil }
        return Finding(
            "clock", .warning, "The clock is not synchronized; schedules and set times depend on it.",
            next: "See its state with: timedatectl")
    }

    /// Whether the schedules of a user's own daemon run while the user is logged out.
    static func lingering(
        user: String, schedules: Int,
        exists: (String) -> Bool = { access($0, F_OK) == 0 }
    ) -> Finding? {
        guard schedules > 0, exists("/run/systemd/system"), !exists("/var/lib/systemd/linger/\(user)") else {
            return nil
        }
        return Finding(
            "systemd", .warning, "Your schedules run only while you are logged in.",
            next: "Let your daemon run always: loginctl enable-linger \(user)")
    }

    /// Who has almost reached the limit of what one user may store.
    static func stored(_ users: [JSON], _ info: JSON) -> [Finding] {
        guard let limit = info["limits"]?["storedPerUser"]?.int, limit > 0 else { return [] }
        return users.filter { Double($0["stored"]?.int ?? 0) >= Double(limit) * full }.map { user in
            Finding(
                "storage", .warning,
                "The jobs of \(user["name"]?.string ?? user.number("uid")) take up "
                    + "\(Quantities.size(user["stored"]?.int ?? 0)) of \(Quantities.size(limit)); the oldest finished "
                    + "ones will be removed.",
                next: "Remove finished jobs with: deferctl remove --state succeeded --before 1d; or raise "
                    + "limits.storedPerUser.")
        }
    }

    /// Whether the daemons that share the jobs are alike, and none is away.
    static func nodes(_ nodes: [JSON]) -> [Finding] {
        guard nodes.count > 1 else { return [] }
        let away = nodes.filter { $0["state"] == "away" }.map { node in
            Finding(
                "nodes", .warning,
                "The node \(name(node)) has not been in touch with the database"
                    + "\(node.time("seen").map { " since \(Quantities.time($0))" } ?? ""), and did not stop.",
                next: "See that its machine runs and reaches the database; others have taken over its jobs.")
        }
        let findings = [
            difference(
                nodes, "version", "have different versions", next: "Install the same version of deferd on all of them."),
            difference(
                nodes, "configuration", "have different settings",
                next: "Compare their files, deferd.yaml(5); it depends on the node how a job runs."),
        ]
        let all = away + findings.compactMap(\.self)
        return all.isEmpty ? [Finding("nodes", .ok, "\(nodes.count) nodes share the jobs.")] : all
    }

    /// The values of a member that the nodes do not have in common, unless they stopped.
    private static func difference(_ nodes: [JSON], _ member: String, _ what: String, next: String) -> Finding? {
        let present = nodes.filter { $0["state"] != "stopped" }
        let groups = Dictionary(grouping: present) { $0[member]?.string ?? "?" }.sorted { $0.key < $1.key }
        guard groups.count > 1 else { return nil }
        let texts = groups.map { "\($0) (\($1.map(name).joined(separator: ", ")))" }
        return Finding("nodes", .warning, "The nodes \(what): \(texts.joined(separator: ", ")).", next: next)
    }

    private static func name(_ node: JSON) -> String { node["node"]?.string ?? "?" }

    /// Whether jobs can be stored, and how much space is free.
    static func storage(_ stats: JSON) -> Finding? {
        guard let storage = stats["storage"] else { return nil }
        if let failure = storage["failure"]?.string {
            return Finding(
                "storage", .error, "Nothing can be stored: \(failure)",
                next: "Make room, or repair what it names; then the daemon continues by itself.")
        }
        guard let free = storage["free"]?.int else { return nil }
        let minimum = storage["minimumFree"]?.int ?? 0
        let text = "The disk of the state has \(Quantities.size(free)) free"
        guard free / 2 >= minimum else {
            return Finding(
                "storage", .warning,
                "\(text); below \(Quantities.size(minimum.saturatingAdding(minimum))), downloads to it wait, and below "
                    + "\(Quantities.size(minimum)), submissions are refused.",
                next: "Make room on it, or remove finished jobs with: deferctl remove")
        }
        return Finding("storage", .ok, text + ".")
    }

    /// How full the limits are that the caller may see.
    static func limits(_ info: JSON, _ stats: JSON) -> [Finding] {
        let waiting = ["scheduled", "held", "queued"].reduce(0) { $0 + (stats["jobs"]?[$1]?.int ?? 0) }
        let connections = stats["connections"]?.int ?? 0
        func use(_ text: String, _ used: Int, of name: String, next: String) -> Finding? {
            // An administrator sees the jobs and connections of all users.
            let name = isAdmin(info) ? name : name + "PerUser"
            guard let limit = info["limits"]?[name]?.int, limit > 0 else { return nil }
            let isFull = Double(used) >= Double(limit) * full
            return Finding(
                "limits", isFull ? .warning : .ok, "\(text); limits.\(name) is \(limit).", next: isFull ? next : nil)
        }
        return [
            use(
                Self.waiting(waiting), waiting, of: "queuedJobs",
                next: "See what they wait for with: deferctl queue list"),
            use(
                connections == 1 ? "1 connection is open" : "\(connections) connections are open", connections,
                of: "connections", next: "Close programs that watch needlessly, or let several share one connection."),
        ].compactMap(\.self)
    }

    private static func waiting(_ jobs: Int) -> String { jobs == 1 ? "1 job waits" : "\(jobs) jobs wait" }

    static func queues(_ queues: [JSON]) -> [Finding] {
        let suspended = queues.filter { $0["suspended"]?.bool == true }
        if suspended.isEmpty { return [Finding("queues", .ok, "No queue is suspended.")] }
        return suspended.map { queue in
            let name = queue["queue"]?.string ?? "?"
            let waiting = queue["queued"]?.int ?? 0
            return Finding(
                "queues", waiting > 0 ? .warning : .note,
                "The queue \(name) is suspended, and \(Self.waiting(waiting)) in it.",
                next: "An administrator can start them with: deferctl queue resume \(name)")
        }
    }

    /// Those of the jobs that wait for a disk, which may be another one than the disk of the state.
    static func disks(_ jobs: [JobSnapshot]) -> Finding {
        let waiting = jobs.filter { $0.state == "scheduled" && $0.error?["kind"] == "storage" }
        guard let first = waiting.first else { return Finding("disks", .ok, "No job waits for room on a disk.") }
        return Finding(
            "disks", .warning,
            "\(Self.waiting(waiting.count)) until a disk has room, or can be written to. Job \(first.id): "
                + (first.error?["message"]?.string ?? "It cannot write."),
            next: "Make room there, or repair what it names; the daemon then tries again by itself. See when with: "
                + "deferctl show \(first.id)")
    }

    static func failures(_ failed: [JobSnapshot], now: Timestamp) -> [Finding] {
        if failed.isEmpty { return [Finding("failures", .ok, "No failed job is stored.")] }
        return failed.prefix(mostFailures).map { job in
            let age = job.json.time("finishedAt").map { " \(Quantities.age(now.seconds(since: $0))) ago" } ?? ""
            let word = JobText(job, now: now).errorWord ?? "failed"
            return Finding(
                "failures", .note, "Job \(job.id) failed\(age) (\(word)): \(job.error?["message"]?.string ?? "")",
                next: "deferctl show \(job.id)")
        }
    }
}
