import ArgumentParser
import JobClient
import JobModel

/// Says what is wrong, and what to do about it.
struct DoctorCommand: DaemonCommand {
    static let configuration = CommandConfiguration(
        commandName: "doctor",
        abstract: "Look for what is wrong: socket, rights, versions, disks, limits, queues, failed jobs, units.",
        discussion: """
            Each finding is ok, a note, a warning or an error, with what to do next. The exit status is 0 where there is \
            no warning and no error, 1 where there is one, and as of every verb where the daemon cannot be reached (69), \
            or not be used (77).

            Example: deferctl doctor
            """)

    @OptionGroup var global: GlobalOptions

    func perform(_ invocation: Invocation) async throws -> ExitStatus {
        let console = invocation.console
        let (_, origin) = try invocation.search.location(flag: global.socket)
        return try await Examination(invocation: invocation, origin: origin) { finding in
            if invocation.writesJSON {
                try console.line(finding.json)
            } else {
                try console.lines(finding.lines(width: console.width, palette: console.palette))
            }
        }.run()
    }
}
