import ArgumentParser
import JobClient
import JobModel

struct QueueCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "queue", abstract: "List queues and change their limits.",
        discussion: "Example: deferctl queue set default --concurrency 2 --byte-rate 2M",
        subcommands: [QueueListCommand.self, QueueSetCommand.self, QueueSuspendCommand.self, QueueResumeCommand.self],
        defaultSubcommand: QueueListCommand.self)
}

struct QueueListCommand: DaemonCommand {
    static let configuration = verb(
        "list", "List the queues.", example: "deferctl queue list",
        "LIMIT is the number of jobs that may run at the same time, USER the number for one user.")

    @OptionGroup var global: GlobalOptions

    func perform(_ invocation: Invocation) async throws -> ExitStatus {
        let queues = try await invocation.withDaemon { try await $0.queues() }
        return try invocation.show(queues, as: QueueTable.lines(queues, invocation.console.format))
    }
}

struct QueueName: ParsableArguments {
    @Argument(help: "The queue's name.", completion: LiveCompletion.queues) var queue: String
}

struct QueueSetCommand: QueueChange {
    static let configuration = verb(
        "set", "Change the limits of a queue.", example: "deferctl queue set default --start-rate 10/1s",
        """
        A limit that is set wins over the daemon's configuration, also after a restart. The value default gives it back \
        to the configuration; --default gives back all settings that are not named. Only for administrators.
        """)

    @Option(help: .value("count", "How many of its jobs may run at the same time.")) var concurrency: Revocable<Int>?
    @Option(help: .value("count", "How many of these may belong to one user.")) var perUser: Revocable<Int>?
    @Option(help: .value("rate", "How many sources may start in a time, such as 10/1s.")) var startRate:
        Revocable<StartRate>?
    @Option(help: .value("bytes", "Bytes per second of all its transfers together, such as 2M.")) var byteRate:
        Revocable<ByteRate>?
    @Flag(name: .customLong("default"), help: "Give the other settings back to the configuration.") var gives = false
    @OptionGroup var global: GlobalOptions
    @OptionGroup var name: QueueName

    var settings: JSONObject {
        let back = gives ? JSON.null : JSON?.none
        return [
            "concurrency": concurrency?.json(\.json) ?? back, "perUser": perUser?.json(\.json) ?? back,
            "startRate": startRate?.json(\.json) ?? back, "byteRate": byteRate?.json(\.bytes.json) ?? back,
            "suspended": back,
        ]
    }

    func validate() throws {
        if settings.members.isEmpty { throw ValidationError("Say what to change, such as --concurrency 4.") }
    }
}

struct QueueSuspendCommand: QueueChange {
    static let configuration = verb(
        "suspend", "Start no more jobs of a queue.", example: "deferctl queue suspend default",
        "Running jobs go on, and new jobs are accepted. Only for administrators.")

    @OptionGroup var global: GlobalOptions
    @OptionGroup var name: QueueName
    var settings: JSONObject { ["suspended": true] }
}

struct QueueResumeCommand: QueueChange {
    static let configuration = verb(
        "resume", "Start jobs of a suspended queue again.", example: "deferctl queue resume default",
        "Only for administrators.")

    @OptionGroup var global: GlobalOptions
    @OptionGroup var name: QueueName
    var settings: JSONObject { ["suspended": false] }
}

protocol QueueChange: DaemonCommand {
    var settings: JSONObject { get }
    var name: QueueName { get }
}

extension QueueChange {
    func perform(_ invocation: Invocation) async throws -> ExitStatus {
        let queue = name.queue
        let answer = try await invocation.withDaemon { client in
            // A mistyped name must not create a new queue.
            let names = try await client.queues().compactMap { $0["queue"]?.string }
            guard names.contains(queue) else {
                throw CommandFailure(
                    .badData,
                    "There is no queue \"\(queue)\", only \(names.joined(separator: ", ")); check its name, or add it "
                        + "to the daemon's configuration.")
            }
            return try await client.setQueue(queue, settings)
        }
        return try invocation.show([answer], as: QueueTable.lines([answer], invocation.console.format))
    }
}

enum QueueTable {
    static func lines(_ queues: [JSON], _ format: TextFormat = TextFormat()) -> [String] {
        Table<JSON>([
            .init("QUEUE", cut: .end, least: 7) { $0.text("queue") ?? "?" },
            .number("LIMIT", of: "concurrency", rank: 2), .number("USER", of: "perUser", rank: 3),
            .number("RATE", rank: 6, isOptional: true) { $0["byteRate"]?.double.map(Quantities.rate) ?? "" },
            .number("STARTS", rank: 5, isOptional: true) { $0["startRate"].map(starts) ?? "" },
            .number("RUNNING", of: "running"), .number("QUEUED", of: "queued"),
            .number("SCHEDULED", of: "scheduled", rank: 1), .number("HELD", of: "held", rank: 4),
            .init("STATE") { StyledText(state: $0["suspended"]?.bool == true ? "suspended" : "open") },
        ]).lines(queues, format)
    }

    private static func starts(_ rate: JSON) -> String {
        rate.isNull ? "" : "\(rate.number("count"))/\(rate["seconds"]?.description ?? "?")s"
    }
}
