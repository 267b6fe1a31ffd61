import Foundation
import Glibc
import JobModel
import TestSupport
import Testing

/// An orderly stop: calls that were read are answered, nothing is lost, and the daemon exits with 0.
@Suite struct ShutdownTests {
    @Test(arguments: [SIGTERM, SIGINT])
    func stop_answersOpenWaits_whenSignalled(_ signal: Int32) async throws {
        try await Household.with { household in
            let (daemon, wire) = try await household.serve(configuration: ProgramTests.anyProgram)
            let job = try await wire.submit(.timer(1000))
            let program = try await wire.submit(ProgramTests.shell("exec sleep 1000"))
            let waits = [
                wire.send("job.wait", .job(job)), wire.send("job.wait", ["jobs": [JSON(job)], "timeout": 900]),
                wire.send("job.output", ["job": JSON(program), "offset": 0, "wait": 60]),
            ]
            _ = try await wire.call("job.watch", .job(job))
            daemon.process.send(signal: signal)
            for wait in waits {
                let error = try await wire.answer(JSON(wait))["error"]
                #expect(error?["code"] == -32005)
                #expect(error?["data"]?["kind"] == "shutting-down")
            }
            _ = try await wire.rest()
            #expect(try await daemon.process.end() == .code(0))
            #expect(!Files.exists(daemon.socket), "the socket file is left behind")
        }
    }

    /// A wait that began after the others had been ended kept the daemon from ending for good.
    @Test func stop_ends_whenWaitsComeTogetherWithTheSignal() async throws {
        try await Household.with { household in
            let (daemon, first) = try await household.serve()
            let job = try await first.submit(.timer(1000))
            let wires = try (0..<20).map { _ in try daemon.connect() }
            for wire in wires { _ = try await wire.call("server.info") }
            // It finds the lines and the signal at the same moment.
            daemon.process.send(signal: SIGSTOP)
            for wire in wires { for _ in 0..<50 { wire.send("job.wait", .job(job)) } }
            daemon.process.send(signal: SIGTERM)
            daemon.process.send(signal: SIGCONT)
            for wire in wires {
                for line in try await wire.rest() { #expect(line.json["error"]?["code"] == -32005, "\(line)") }
            }
            #expect(try await daemon.process.end() == .code(0))
        }
    }

    @Test func stop_answersWhatWasRead_whenBurstIsUnderWay() async throws {
        try await Household.with { household in
            var daemon = try await household.start()
            let wire = try daemon.connect()
            let count = 500
            var lines = ""
            for number in 1...count {
                lines += Wire.request(number, "job.submit", .value(JSON(number), ["delay": 1000])) + "\n"
            }
            wire.send(raw: lines)
            let first = try await wire.result(1)
            daemon.process.send(signal: SIGTERM)
            var answered: [Int: Int] = [1: try #require(first["job"]?.int)]
            for line in try await wire.rest() {
                let id = try #require(line.id?.int, "\(line)")
                if let job = line.json["result"]?["job"]?.int {
                    answered[id] = job
                } else {
                    #expect(line.json["error"]?["code"] == -32005, "\(line)")
                }
            }
            #expect(try await daemon.process.end() == .code(0))
            // Answers come in the order of the requests, without gaps.
            #expect(answered.keys.sorted() == Array(1...answered.count))

            daemon = try await household.start()
            let after = try daemon.connect()
            for (number, job) in answered {
                let stored = try await after.call("job.get", .job(job))
                #expect(stored["source"]?["value"]?.int == number)
            }
            let stats = try await after.call("server.stats")
            #expect(stats["jobs"]?["scheduled"]?.int == answered.count, "nothing is stored that was not answered")
            try await daemon.stop()
        }
    }

    @Test func stop_isNotHeldUp_byIdleOrSilentClients() async throws {
        try await Household.with { household in
            let (daemon, idle) = try await household.serve()
            // Halfway in a request.
            let halfway = try daemon.connect()
            halfway.send(raw: "{\"jsonrpc\": \"2.0\", \"id\"")
            // Its answers fill every buffer on the way, and it does not read them.
            let silent = try daemon.connect(reads: false)
            let value = JSON.string(String(repeating: "x", count: 100_000))
            let job = try await idle.submit(.value(value))
            _ = try await idle.wait(job)
            for _ in 0..<30 { silent.send("job.get", .job(job)) }
            _ = try await idle.call("server.info")
            // Within the patience that every stop is given.
            try await daemon.stop()
            #expect(try await idle.rest().isEmpty)
        }
    }

    // MARK: - While it starts

    /// However far it is.
    @Test(arguments: [SIGTERM, SIGINT])
    func start_endsInOrder_whenSignalledAsSoonAsItHandlesSignals(_ signal: Int32) async throws {
        try await Stage.with {
            try await TemporaryDirectory.with { directory in
                let process = try ChildProcess(try Daemon.command(in: directory, configuration: ""))
                // Only the kernel knows how far it is.
                while Self.isUncaught(signal, by: process.pid) { try await Task.sleep(for: .milliseconds(2)) }
                process.send(signal: signal)
                #expect(try await process.end() == .code(0), "\(process.errorText)")
            }
        }
    }

    @Test(arguments: [SIGTERM, SIGINT])
    func start_endsInOrder_whenSignalledOnceItsStateIsOpen(_ signal: Int32) async throws {
        try await Household.with { household in
            let killed = try await household.start()
            let job = try await killed.connect().submit(.timer(1000))
            try await killed.crash()
            // A process that never accepts: the daemon checks whether it is another daemon.
            let path = killed.socket
            let (listener, first) = (
                socket(AF_UNIX, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0),
                socket(AF_UNIX, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
            )
            defer { close(first) }
            let address = try UnixAddress(path)
            try #require(unlink(path) == 0 && address.with { bind(listener, $0, $1) } == 0 && listen(listener, 0) == 0)
            try #require(address.with { connect(first, $0, $1) } == 0)
            let roots = "downloads:\n  roots: [\(household.directory.path)/nowhere]\n"
            let process = try ChildProcess(try Daemon.command(in: household.directory, configuration: roots))
            try await process.line(containing: "downloads.roots")
            process.send(signal: signal)
            close(listener)
            #expect(try await process.end() == .code(0), "\(process.errorText)")
            #expect(!Files.exists(path), "the socket file is left behind")
            #expect(!Files.names(in: killed.state).contains { $0.hasSuffix("-wal") }, "the database is not closed")
            let daemon = try await household.start()
            #expect(try await daemon.connect().call("job.get", .job(job))["state"] == "running")
            try await daemon.stop()
        }
    }

    /// Whether a process is there that does not handle `signal` yet.
    private static func isUncaught(_ signal: Int32, by pid: pid_t) -> Bool {
        let status = (try? String(contentsOfFile: "/proc/\(pid)/status", encoding: .utf8)) ?? ""
        guard let line = status.split(separator: "\n").first(where: { $0.hasPrefix("SigCgt:") }) else { return false }
        let caught = line.split(separator: "\t").last.flatMap { UInt64($0, radix: 16) } ?? 0
        return caught >> UInt64(signal - 1) & 1 == 0
    }
}
