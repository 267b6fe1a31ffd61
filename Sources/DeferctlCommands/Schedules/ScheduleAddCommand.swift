import ArgumentParser
import Glibc
import JobClient
import JobModel

/// Makes a schedule, or replaces one.
struct ScheduleAddCommand: DaemonCommand {
    static let configuration = CommandConfiguration(
        commandName: "add",
        abstract: "Make a schedule, or replace the one of that name.",
        discussion: """
            --calendar takes the five fields of crontab(5) (minute, hour, day of month, month, day of week), or \
            @hourly, @daily, @weekly, @monthly or @yearly. SPEC is a job spec, whose strings may hold \
            {{schedule/name}} and {{schedule/time}}; an argument that begins with { is the spec itself, any other \
            the file that it stands in.

            Example: deferctl schedule add nightly --calendar '0 6 * * mon-fri' --zone Europe/Berlin \
            '{"source": {"type": "url", "url": "https://example.org/report"}}'
            """)

    @Option(name: .long, help: ArgumentHelp("Submit at these times.", valueName: "fields"))
    var calendar: String?

    @Option(
        name: .long,
        help: ArgumentHelp("The zone of the calendar, such as Europe/Berlin (default: UTC).", valueName: "name"))
    var zone: String?

    @Option(name: .long, help: ArgumentHelp("Submit every so many seconds from now on.", valueName: "seconds"))
    var every: Double?

    @Option(
        name: .long,
        help: ArgumentHelp(
            "For times that passed while no daemon ran: last (one job), none or all.", valueName: "which"),
        completion: .list(["last", "none", "all"]))
    var catchUp: String?

    @Option(
        name: .long,
        help: ArgumentHelp("While the job before is not finished: skip or queue.", valueName: "what"),
        completion: .list(["skip", "queue"]))
    var overlap: String?

    @Flag(name: .long, help: "Make it suspended; see schedule resume.")
    var suspended = false

    @OptionGroup var global: GlobalOptions

    @Argument(help: "The schedule's name: letters, digits, dots, underscores and hyphens.")
    var name: String

    @Argument(
        help: ArgumentHelp("A job spec, or the file that it stands in; - is standard input.", valueName: "spec"),
        completion: .file())
    var spec = "-"

    func validate() throws {
        guard (calendar == nil) != (every == nil) else { throw ValidationError("Give either --calendar or --every.") }
        guard zone == nil || calendar != nil else { throw ValidationError("--zone is for --calendar.") }
    }

    func perform(_ invocation: Invocation) async throws -> ExitStatus {
        if spec == "-", isatty(STDIN_FILENO) == 1 {
            invocation.console.say("Reading a job spec from the terminal, to Ctrl-D; see deferctl help schedule add.")
        }
        let json = try await readSpec()
        let timing: JobClient.ScheduleTiming = calendar.map { .calendar($0, zone: zone) } ?? .every(every ?? 0)
        var options = JobClient.ScheduleOptions()
        options.catchUp = catchUp
        options.overlap = overlap
        options.isSuspended = suspended
        let answer = try await invocation.withDaemon { [options] client in
            try await client.setSchedule(name, timing, spec: json, options: options)
        }
        try invocation.show(schedules: [answer])
        return .ok
    }

    private func readSpec() async throws -> JSON {
        var specs: [JSON] = []
        for try await document in SpecDocuments(argument: spec) {
            specs.append(try document.spec.get())
            if specs.count > 1 { break }
        }
        guard specs.count == 1 else {
            throw CommandFailure(.badData, "A schedule has one job spec; put several jobs into a list.")
        }
        return specs[0]
    }
}
