import ArgumentParser
import Glibc
import JobClient
import JobModel

struct ScheduleAddCommand: DaemonCommand {
    static let configuration = verb(
        "add", "Create a schedule, or replace the one with that name.",
        example:
            #"deferctl schedule add nightly --calendar '0 6 * * mon-fri' --zone Europe/Berlin '{"source": {"type": "url", "url": "https://example.org/report"}}'"#,
        """
        --calendar takes the five fields of crontab(5) (minute, hour, day of month, month, day of week), or \
        @hourly, @daily, @weekly, @monthly or @yearly. SPEC is a job spec, whose strings may contain \
        {{schedule/name}} and {{schedule/time}}; an argument that begins with { is the spec itself, any other \
        argument is the name of a file.
        """)

    @Option(help: .value("fields", "Submit at these times.")) var calendar: String?
    @Option(help: .value("name", "The time zone of the calendar, such as Europe/Berlin (default: UTC).")) var zone:
        String?
    @Option(help: .value("seconds", "Submit every so many seconds, starting now.")) var every: Double?

    @Option(
        help: .value("which", "For times that passed while no daemon ran: last (one job), none or all."),
        completion: .list(["last", "none", "all"]))
    var catchUp: String?

    @Option(
        help: .value("what", "If the previous job is not finished: skip or queue."),
        completion: .list(["skip", "queue"]))
    var overlap: String?

    @Flag(help: "Create it suspended; see schedule resume.") var suspended = false
    @OptionGroup var global: GlobalOptions
    @Argument(help: "The schedule's name: letters, digits, dots, underscores and hyphens.") var name: String

    @Argument(help: .value("spec", "A job spec, or a file with one; - is standard input."), completion: .file())
    var spec = "-"

    func validate() throws {
        guard (calendar == nil) != (every == nil) else { throw ValidationError("Use either --calendar or --every.") }
        guard zone == nil || calendar != nil else { throw ValidationError("--zone needs --calendar.") }
    }

    func perform(_ invocation: Invocation) async throws -> ExitStatus {
        if spec == "-", isatty(STDIN_FILENO) == 1 {
            invocation.console.say(
                "Reading a job spec from the terminal, up to Ctrl-D; see deferctl help schedule add.")
        }
        var documents = SpecDocuments(argument: spec)
        let json = try await documents.next()?.spec.get()
        guard let json, try await documents.next() == nil else {
            throw CommandFailure(.badData, "A schedule has one job spec; put several jobs into a list.")
        }
        let timing: JobClient.ScheduleTiming = calendar.map { .calendar($0, zone: zone) } ?? .every(every ?? 0)
        var options = JobClient.ScheduleOptions()
        (options.catchUp, options.overlap, options.isSuspended) = (catchUp, overlap, suspended)
        return try await invocation.showSchedule { [options] in
            try await $0.setSchedule(name, timing, spec: json, options: options)
        }
    }
}
