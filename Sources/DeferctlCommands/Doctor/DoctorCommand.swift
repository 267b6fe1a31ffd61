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
        let (path, origin) = try invocation.search.location(flag: global.socket)
        var hasTrouble = false
        func add(_ findings: [Finding?]) throws {
            for finding in findings.compactMap(\.self) {
                hasTrouble = hasTrouble || finding.level.isTrouble
                try invocation.show([finding.json], as: finding.lines(invocation.console.format))
            }
        }
        let examination = Examination(path: path, search: invocation.search)
        let facts = SocketFacts(at: path)
        do {
            try await JobClient.withConnection(path: path) { client in
                try add([Finding("socket", .ok, "\(path), \(origin).")])
                try await examination.ask(client, add)
            }
            try add(examination.units(isReachable: true))
            return hasTrouble ? .jobFailed : .ok
        } catch let error as JobClientError {
            let failure = CommandFailure(error)
            let next =
                switch (error.code, facts.kind) {
                case (.denied, _): facts.nextForDenied(user: Accounts.userName(geteuid()))
                case (.unreachable, .other): "That file is not a socket; name the daemon's socket with --socket."
                case (.unreachable, _): invocation.search.startHint(for: path)
                default: "Try again; if the problem persists, see the daemon's journal."
                }
            try add([Finding("socket", .error, "\(path), \(origin): \(failure.message)", next: next)])
            try add(examination.units(isReachable: false))
            return failure.status
        }
    }
}

/// The result of one check of `deferctl doctor`, with what to do about it.
struct Finding: Sendable, Equatable {
    enum Level: String, Sendable {
        case ok
        /// Worth knowing, but no problem.
        case note
        /// A problem soon, or for some users.
        case warning
        case error

        /// Whether something must be done.
        var isTrouble: Bool { self == .warning || self == .error }
    }

    let check: String
    let level: Level
    let message: String
    /// What to do next, as a sentence or a command.
    let next: String?

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

/// The checks of a daemon that answers, and of its units.
private struct Examination {
    let path: String
    let search: SocketSearch

    /// The jobs that are read one page after the other, and the running lists whose children are read.
    private static let (mostJobs, mostLists) = (10_000, 20)

    func ask(_ client: JobClient, _ add: ([Finding?]) throws -> Void) async throws {
        let info = try await client.info()
        let user = Accounts.userName(geteuid())
        try add(Diagnosis.identity(info, client: ProductVersion.current, user: user))
        guard info["protocol"]?.int == 1 else { return }
        let clock = ProgramOutput.read("timedatectl show --property=NTPSynchronized")
        try add([Diagnosis.configuration(info), Diagnosis.clock(clock)])
        let stats = try await client.stats()
        try add([Diagnosis.storage(stats)] + Diagnosis.limits(info, stats))
        try add(Diagnosis.stored((try? await client.usage()) ?? [], info))
        try add(Diagnosis.nodes((try? await client.nodes()) ?? []))
        try add([Diagnosis.disks(try await waitingForDisks(client))])
        try add(Diagnosis.queues(try await client.queues()))
        if search.isUserUnit(for: path) == true, access("/run/systemd/system", F_OK) == 0 {
            let isLingering = access("/var/lib/systemd/linger/\(user)", F_OK) == 0
            let schedules = try await client.schedules().count
            try add([Diagnosis.lingering(user: user, schedules: schedules, isLingering: isLingering)])
        }
        let failed = try await client.list(JobClient.Filter(states: ["failed"]), limit: Diagnosis.mostFailures).jobs
        try add(Diagnosis.failures(failed, now: .now))
    }

    /// The jobs that wait for a disk, the oldest first, then the children of running lists.
    private func waitingForDisks(_ client: JobClient) async throws(JobClientError) -> [JobSnapshot] {
        var filter = JobClient.Filter(states: ["running"], isOldestFirst: true)
        let lists = try await client.list(filter, limit: 1000).jobs.filter { ($0.json["children"]?.int ?? 0) > 0 }
        filter.states = ["scheduled"]
        var waiting: [JobSnapshot] = []
        for parent in [nil] + lists.prefix(Self.mostLists).map({ Optional($0.id) }) {
            filter.parent = parent
            var (after, seen) = (Int64?.none, 0)
            repeat {
                let page = try await client.list(filter, after: after, limit: 1000)
                waiting += page.jobs.filter(Diagnosis.waitsForDisk)
                after = page.next
                seen += page.jobs.count
            } while after != nil && seen < Self.mostJobs
        }
        return waiting
    }

    /// What systemd says, if the socket belongs to one of its units.
    func units(isReachable: Bool) -> [Finding?] {
        guard let isUser = search.isUserUnit(for: path) else { return [] }
        guard let output = ProgramOutput.read("systemctl \(isUser ? "--user " : "")show \(ServiceUnits.asked)") else {
            return [Finding("systemd", .note, "systemctl does not answer; the daemon is not run by systemd here.")]
        }
        let units = ServiceUnits(showing: output, isUser: isUser)
        return [units.finding(isReachable: isReachable), units.hardening]
    }
}
