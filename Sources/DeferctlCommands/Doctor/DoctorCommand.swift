import ArgumentParser
import Glibc
import JobClient
import JobModel
import JobProtocol

struct DoctorCommand: DaemonCommand {
    static let configuration = verb(
        "doctor", "Look for problems: socket, rights, versions, nodes, disks, limits, queues, failed jobs, units.",
        example: "deferctl doctor",
        """
        Each finding is ok, a note, a warning or an error, with what to do next. The exit status is 0 if there is no \
        warning and no error, 1 if there is one, 69 if the daemon cannot be reached, and 77 if you may not use it.
        """)

    @OptionGroup var global: GlobalOptions

    func perform(_ invocation: Invocation) async throws -> ExitStatus {
        let (socket, path) = (invocation.socket, invocation.socket.path)
        var hasTrouble = false
        func add(_ findings: [Finding?]) throws {
            for var finding in findings.compactMap(\.self) {
                finding.next = finding.next?.replacing("deferctl ", with: socket.command + " ")
                hasTrouble = hasTrouble || finding.level.isTrouble
                try invocation.show([finding.json], as: finding.lines(invocation.console.format))
            }
        }
        var status = ExitStatus.ok
        do {
            try await JobClient.withConnection(path: path) { client in
                try add([Finding("socket", .ok, "\(path), \(socket.origin).")])
                try await examine(client, add)
                if socket.isUserUnit == true {
                    try add([Diagnosis.lingering(user: user, schedules: try await client.schedules().count)])
                }
            }
        } catch let error as JobClientError {
            let failure = CommandFailure(error)
            if error.rpc?.kind == "storage" {
                try add([Finding("storage", .error, failure.message)])
                return .jobFailed
            }
            let next =
                switch error.code {
                case .denied: SocketGroup.nextForDenied(user, group: SocketGroup.name(at: path))
                case .unreachable where access(path, F_OK) == 0 && !isFile(path, S_IFSOCK):
                    "That file is not a socket; name the daemon's socket with --socket."
                case .unreachable: socket.startHint()
                default: "Try again; if the problem persists, see the daemon's journal."
                }
            try add([Finding("socket", .error, "\(path), \(socket.origin): \(failure.message)", next: next)])
            status = failure.status
        }
        if let isUser = socket.isUserUnit {
            try add(ServiceUnits.findings(isUser: isUser, isReachable: status == .ok))
        }
        return status == .ok && hasTrouble ? .jobFailed : status
    }

    private var user: String { Accounts.userName(geteuid()) }

    private func examine(_ client: JobClient, _ add: ([Finding?]) throws -> Void) async throws {
        let info = try await client.info()
        try add(Diagnosis.identity(info, client: ProductVersion.current, user: user))
        let clock = ProgramOutput.read("timedatectl show --property=NTPSynchronized")
        try add([Diagnosis.configuration(info), Diagnosis.clock(clock)])
        let stats = try await client.stats()
        try add([Diagnosis.storage(stats)] + Diagnosis.limits(info, stats))
        try add(Diagnosis.stored((try? await client.usage()) ?? [], info))
        try add(Diagnosis.nodes((try? await client.nodes()) ?? []))
        try add([Diagnosis.disks(try await scheduled(client))])
        try add(Diagnosis.queues(try await client.queues()))
        let failed = try await client.list(JobClient.Filter(states: ["failed"]), limit: Diagnosis.mostFailures).jobs
        try add(Diagnosis.failures(failed, now: .now))
    }

    /// The oldest scheduled jobs, and then those among the children of the oldest running lists.
    private func scheduled(_ client: JobClient) async throws(JobClientError) -> [JobSnapshot] {
        var filter = JobClient.Filter(states: ["running"], isOldestFirst: true)
        let lists = try await client.list(filter, limit: 1000).jobs.filter { ($0.json["children"]?.int ?? 0) > 0 }
        filter.states = ["scheduled"]
        var jobs: [JobSnapshot] = []
        for parent in [nil] + lists.prefix(20).map({ Optional($0.id) }) {
            filter.parent = parent
            jobs += try await client.list(filter, limit: 1000).jobs
        }
        return jobs
    }
}

/// The result of one check of `deferctl doctor`, with what to do about it.
struct Finding: Sendable, Equatable {
    enum Level: String, Sendable {
        case ok, note, warning, error

        var isTrouble: Bool { self == .warning || self == .error }
    }

    let check: String
    let level: Level
    let message: String
    /// What to do next, as a sentence or a command.
    var next: String?

    init(_ check: String, _ level: Level, _ message: String, next: String? = nil) {
        (self.check, self.level, self.message, self.next) = (check, level, message, next)
    }

    var json: JSON {
        .object(["check": check.json, "level": level.rawValue.json, "message": message.json, "next": next?.json])
    }

    func lines(_ format: TextFormat) -> [String] {
        let head = level.rawValue.padded(to: 9) + check.padded(to: 10)
        let texts = [message.sanitized] + (next.map { ["-> \($0.sanitized)"] } ?? [])
        var lines = String.hanging(texts, behind: head, within: format.width)
        lines[0] = format.paint(StyledText(state: level.rawValue)) + lines[0].dropFirst(level.rawValue.count)
        return lines
    }
}
