import JobClient
import JobModel

/// What the answers of a daemon say about its health. Values only; ``Examination`` asks.
enum Diagnosis {
    /// The part of a limit from which on it is close to full.
    private static let full = 0.9
    /// The failed jobs that are told.
    static let mostFailures = 3

    /// Who the daemon is, and who it takes the caller for.
    static func identity(_ info: JSON, client: String, user: String) -> [Finding] {
        let version = info["version"]?.string ?? "of an unknown version"
        let protocolVersion = info["protocol"]?.int
        let what =
            "\(info["name"]?.string ?? "deferd") \(version)"
            + (protocolVersion.map { ", protocol \($0)" } ?? "")
            + (info["pid"]?.int.map { ", process \($0)" } ?? "")
            + (info["startedAt"]?.string.map { ", since \($0)" } ?? "")
        let daemon =
            if protocolVersion != 1 {
                Finding(
                    "daemon", .error, "\(what): this deferctl \(client) speaks protocol 1 only.",
                    next: "Install the deferctl that came with this deferd.")
            } else if version != client {
                Finding(
                    "daemon", .note, "\(what); this is deferctl \(client).",
                    next: "They work together. After an upgrade, restart the daemon: systemctl restart deferd")
            } else {
                Finding("daemon", .ok, "\(what); this is deferctl \(client).")
            }
        let isAdmin = info["you"]?["admin"]?.bool == true
        let rights =
            isAdmin ? "an administrator: you see and change the jobs of all." : "and see and change your own jobs."
        return [daemon, Finding("you", .ok, "You are \(user), \(rights)")]
    }

    /// Whether jobs can be stored, and what room there is.
    static func storage(_ stats: JSON) -> Finding? {
        guard let storage = stats["storage"] else { return nil }
        if let failure = storage["failure"]?.string {
            return Finding(
                "storage", .error, "Nothing can be stored: \(failure)",
                next: "Make room, or mend what it names; the daemon goes on by itself then.")
        }
        guard let free = storage["free"]?.int else { return nil }
        let minimum = storage["minimumFree"]?.int ?? 0
        let text = "The disk of the state has \(Quantities.size(Int64(free))) free"
        guard free / 2 >= minimum else {
            return Finding(
                "storage", .warning,
                "\(text); below \(Quantities.size(Int64(minimum).saturatingAdding(Int64(minimum)))) downloads into it wait, "
                    + "and below \(Quantities.size(Int64(minimum))) submissions are refused.",
                next: "Make room on it, or remove finished jobs with: deferctl remove")
        }
        return Finding("storage", .ok, text + ".")
    }

    /// How full the daemon's limits are, as far as the caller may know.
    static func limits(_ info: JSON, _ stats: JSON) -> [Finding] {
        let isAdmin = info["you"]?["admin"]?.bool == true
        let waiting = ["scheduled", "queued"].reduce(0) { $0 + (stats["jobs"]?[$1]?.int ?? 0) }
        let connections = stats["connections"]?.int ?? 0
        let uses: [(what: String, used: Int, limit: String, next: String)] = [
            (
                Self.waiting(waiting), waiting, isAdmin ? "queuedJobs" : "queuedJobsPerUser",
                "See what they wait for with: deferctl queues"
            ),
            (
                connections == 1 ? "1 connection is open" : "\(connections) connections are open", connections,
                isAdmin ? "connections" : "connectionsPerUser",
                "Close programs that watch and are not needed, or let many share one connection."
            ),
        ]
        return shares(info, waiting, isAdmin)
            + uses.compactMap { use in
                guard let limit = info["limits"]?[use.limit]?.int, limit > 0 else { return nil }
                let text = "\(use.what); limits.\(use.limit) is \(limit)."
                return Double(use.used) >= Double(limit) * full
                    ? Finding("limits", .warning, text, next: use.next) : Finding("limits", .ok, text)
            }
    }

    /// Whether one user alone may have reached a limit, where the caller sees the jobs of all together.
    private static func shares(_ info: JSON, _ waiting: Int, _ isAdmin: Bool) -> [Finding] {
        guard isAdmin, let limit = info["limits"]?["queuedJobsPerUser"]?.int, limit > 0,
            Double(waiting) >= Double(limit) * full
        else { return [] }
        return [
            Finding(
                "limits", .note, "\(Self.waiting(waiting)); a user to whom \(limit) of them belong is refused more.",
                next: "Raise limits.queuedJobsPerUser, or see whose they are with: deferctl list --state queued --json")
        ]
    }

    private static func waiting(_ jobs: Int) -> String { jobs == 1 ? "1 job waits" : "\(jobs) jobs wait" }

    /// Queues that start nothing.
    static func queues(_ queues: [JSON]) -> [Finding] {
        let suspended = queues.filter { $0["suspended"]?.bool == true }
        guard !suspended.isEmpty else {
            return [
                Finding("queues", .ok, "\(queues.count == 1 ? "The queue is" : "All \(queues.count) queues are") open.")
            ]
        }
        return suspended.map { queue in
            let name = queue["queue"]?.string ?? "?"
            let waiting = queue["queued"]?.int ?? 0
            return Finding(
                "queues", waiting > 0 ? .warning : .note,
                "The queue \(name) is suspended, and \(Self.waiting(waiting)) in it.",
                next: "An administrator starts them with: deferctl resume \(name)")
        }
    }

    /// Whether a job waits to be tried again until its disk has room, or can be written to again.
    static func waitsForDisk(_ job: JobSnapshot) -> Bool {
        job.state == "scheduled" && job.error?["kind"]?.string == "storage"
    }

    /// The jobs that wait for a disk, of which that of the state tells nothing where they write to another.
    static func disks(_ waiting: [JobSnapshot]) -> Finding {
        guard let first = waiting.first else { return Finding("disks", .ok, "No job waits for room on a disk.") }
        return Finding(
            "disks", .warning,
            "\(Self.waiting(waiting.count)) until a disk has room, or can be written to. Job \(first.id): "
                + (first.error?["message"]?.string ?? "It cannot write."),
            next: "Make room there, or mend what it names; \(waiting.count == 1 ? "it is" : "they are") tried again "
                + "without further ado. See when with: deferctl show \(first.id)")
    }

    /// The newest failed jobs.
    static func failures(_ failed: [JobSnapshot], now: Timestamp) -> [Finding] {
        if failed.isEmpty { return [Finding("failures", .ok, "No failed job is stored.")] }
        return failed.prefix(mostFailures).map { job in
            let text = JobText(job, now: now)
            let age = job.json.time("finishedAt").map { " \(Quantities.age(now.seconds(since: $0))) ago" } ?? ""
            let message = job.error?["message"]?.string ?? ""
            return Finding(
                "failures", .note, "Job \(job.id) failed\(age) (\(text.errorWord ?? "failed")): \(message)",
                next: "deferctl show \(job.id)")
        }
    }
}
