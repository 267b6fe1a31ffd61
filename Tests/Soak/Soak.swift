import Foundation
import JobClient
import JobModel

/// Loads the daemon with three users and hostile servers for a while, and compares its state at the end with the
/// beginning.
///
/// `soak [MINUTES]`: 10 minutes by default. It warms up for a tenth of that, and at least for the retention time, so
/// that one-time allocations exist and old jobs are removed, and lets the daemon come to rest before and after. It
/// prints a table and exits with 1 if a resource grew.
///
/// `soak floods [SECONDS [NAME]]` measures how one user notices another's floods (``Floods``) instead, 4 seconds per
/// row.
@main
struct Soak {
    static func main() async throws {
        signal(SIGPIPE, SIG_IGN)
        if CommandLine.arguments.dropFirst().first == "floods" { return try await measureFloods() }
        if CommandLine.arguments.dropFirst().first == HostileClients.argument {
            try HostileProcess.run(Array(CommandLine.arguments.dropFirst(2)))
        }
        let minutes = CommandLine.arguments.dropFirst().first.flatMap(Double.init) ?? 10
        let directory = FileManager.default.temporaryDirectory.path + "/deferd-soak-\(getpid())"
        try FileManager.default.createDirectory(atPath: directory, withIntermediateDirectories: true)
        chmod(directory, 0o755)
        let seed = UInt64.random(in: 1 ... .max)
        say("soak: \(minutes) minutes, seed \(seed)")
        if !UserSockets.canBeOthers { say("soak: not root, so that the three users are one user's connections") }
        let daemon = try SoakDaemon(directory: directory)
        let isClean = try await run(daemon, seconds: minutes * 60, seed: seed)
        if isClean {
            try? FileManager.default.removeItem(atPath: directory)
        } else {
            say("soak: what the daemon said and stored is in \(directory)")
        }
        exit(isClean ? 0 : 1)
    }

    private static func measureFloods() async throws {
        let directory = FileManager.default.temporaryDirectory.path + "/deferd-floods-\(getpid())"
        try FileManager.default.createDirectory(atPath: directory, withIntermediateDirectories: true)
        chmod(directory, 0o755)
        guard UserSockets.canBeOthers else { return say("soak: only root can be several users") }
        let daemon = try SoakDaemon(directory: directory, configuration: Floods.configuration)
        let seconds = CommandLine.arguments.dropFirst(2).first.flatMap(Double.init) ?? 4
        let name = CommandLine.arguments.dropFirst(3).first
        let floods = Floods(
            sockets: UserSockets(path: daemon.socket), seconds: seconds, only: name, sample: { daemon.sample() })
        var tooLong: [String] = []
        var failure: (any Error)?
        do { tooLong = try await floods.run() } catch { failure = error }
        if !daemon.stop() { say("soak: The daemon did not end as it should.") }
        if let failure { say("soak: \(failure)") }
        for call in tooLong { say("soak: Too long for another user, twice, or too much memory: \(call)") }
        try? FileManager.default.removeItem(atPath: directory)
        exit(tooLong.isEmpty && failure == nil ? 0 : 1)
    }

    /// Prints a line at once, wherever it goes.
    private static func say(_ line: String) {
        print(line)
        fflush(nil)
    }

    /// How jobs of each kind have to end now and then. Without root the daemon trusts no certificate of ours.
    private static var expected: [String: Outcomes.End] {
        var ends: [String: Outcomes.End] = [
            "scheduled": .success, "time of a schedule": .success, "reading of a body": .success,
        ]
        for kind in SpecMaker.Kind.allCases { ends[kind.rawValue] = kind.ends }
        guard !SoakDaemon.trustsCertificates else { return ends }
        for kind in [SpecMaker.Kind.secure, .secureDownload] { ends[kind.rawValue] = .error("tls") }
        return ends
    }

    private static func run(_ daemon: SoakDaemon, seconds: Double, seed: UInt64) async throws -> Bool {
        let sockets = UserSockets(path: daemon.socket)
        let load = Load(sockets: sockets, servers: try await SoakServers(), seed: seed)
        let start = ContinuousClock.now

        let warmUp = Task { await load.run() }
        try await Task.sleep(for: .seconds(max(Double(SoakDaemon.longestKept), seconds / 10)))
        warmUp.cancel()
        await warmUp.value
        let before = try await rest(daemon, sockets)
        _ = load.collect()

        say(Sample.heading)
        var samples: [Sample] = []
        let work = Task { await load.run() }
        let interval = max(3, seconds / 40)
        for _ in 0..<Int(seconds / interval) {
            try await Task.sleep(for: .seconds(interval))
            guard daemon.isRunning else { break }
            var sample = await sockets.asStarter { daemon.sample() }
            sample.seconds = start.duration(to: .now) / .seconds(1)
            (sample.latencies, sample.finished) = load.collect()
            samples.append(sample)
            say(sample.row)
        }
        work.cancel()
        await work.value
        guard daemon.isRunning else {
            say("soak: THE DAEMON ENDED")
            return false
        }
        let after = try await rest(daemon, sockets)
        let verdict = Verdict(samples, idleBefore: before, idleAfter: after)
        for line in verdict.lines { say(line) }
        for line in load.outcomes.lines { say(line) }
        let problems = load.seenProblems + load.outcomes.problems(expected) + daemon.defects
        for problem in problems { say("PROBLEM  \(problem)") }
        let isStopped = daemon.stop()
        if !isStopped { say("PROBLEM  The daemon did not end as it should.") }
        return verdict.isClean && problems.isEmpty && isStopped
    }

    /// Ends unfinished jobs, and measures the daemon at rest.
    private static func rest(_ daemon: SoakDaemon, _ sockets: UserSockets) async throws -> Sample {
        for user in 0..<3 {
            let client = try await sockets.client(of: user)
            for schedule in try await client.schedules() {
                if let name = schedule["schedule"]?.string { try await client.removeSchedule(name) }
            }
            let filter = JobClient.Filter(states: ["scheduled", "queued", "running"])
            while true {
                let jobs = try await client.list(filter, limit: 1000).jobs
                if jobs.isEmpty { break }
                for job in jobs { _ = try? await client.change(job.id, .cancel) }
            }
            await client.close()
        }
        // Connections that are kept for another request, and threads that nothing uses, go by themselves. Finished jobs
        // are removed until the last is as old as the configuration lets it be, and until then threads are used.
        var sample = await sockets.asStarter { daemon.sample() }
        var unchanged = 0
        for _ in 0..<180 where unchanged < SoakDaemon.retention + 10 {
            try await Task.sleep(for: .seconds(1))
            let next = await sockets.asStarter { daemon.sample() }
            unchanged = next.descriptors == sample.descriptors && next.threads == sample.threads ? unchanged + 1 : 0
            sample = next
        }
        return sample
    }
}
