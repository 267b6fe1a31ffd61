import FakeDaemon
import Foundation
import Glibc
import JobModel
import Synchronization
import TestSupport
import Testing

/// A copy of the state is made while jobs run, and a daemon that starts from it has everything that was answered
/// before.
@Suite struct BackupTests {
    private static func deferctl(_ daemon: Daemon, _ arguments: String..., directory: String? = nil) async throws -> (
        end: ChildProcess.End, output: String, errors: String
    ) {
        try await ChildProcess.run(
            [BuiltProgram.deferctl, "--socket", daemon.socket] + arguments, directory: directory)
    }

    fileprivate static func verify(_ path: String, in directory: TemporaryDirectory) async throws -> (
        end: ChildProcess.End, output: String, errors: String
    ) {
        try await ChildProcess.run([
            BuiltProgram.deferd, "--config", try directory.write("", to: "verify.yaml"), "--verify-state",
            "--state-directory", path,
        ])
    }

    @Test func state_comesBackWhole_whenItWasCopiedUnderLoad() async throws {
        let configuration = "limits: {inlineResult: 1000}\nqueues: {default: 4, slow: 1}"
        try await GuidedOrigin.withHousehold({ _, _ in .whole(Sample.content, etag: "\"1\"") }) { origin, household in
            var daemon = try await household.start(configuration: configuration)
            let wire = try daemon.connect()
            _ = try await wire.call("queue.set", ["queue": "slow", "suspended": true])
            let large = try await wire.submit(.fetch(origin.url("/")))
            #expect(try await wire.wait(large)["result"]?["spilled"] == true)
            let held = try await wire.submit(.value("held", ["queue": "slow"]))
            // All users keep submitting until the daemon is killed.
            let load = Load()
            let clients = try (0..<3).map { client in
                let wire = try daemon.connect()
                return Task { await load.submit(from: client * 1_000_000, wire) }
            }
            try await wire.eventually { $0["totals"]?["submitted"]?.int ?? 0 > 300 }
            let before = load.answered
            let backup = household.directory.path + "/backup.db"
            // By a name relative to the user's directory.
            let (end, _, errors) = try await Self.deferctl(
                daemon, "backup", "backup.db", directory: household.directory.path)
            #expect(end == .code(0), "\(errors)")
            load.end()
            try await daemon.crash()
            for client in clients { await client.value }

            #expect(try Files.mode(of: backup) == 0o600)
            #expect(Files.names(in: household.directory.path).filter { $0.hasPrefix("backup.db") } == ["backup.db"])
            let check = try await Self.verify(backup, in: household.directory)
            #expect(check.end == .code(0) && check.output.contains("is whole"), "\(check)")

            // As deferd(8) says.
            for name in Files.names(in: daemon.state) {
                try FileManager.default.removeItem(atPath: daemon.state + "/" + name)
            }
            try FileManager.default.copyItem(atPath: backup, toPath: daemon.state + "/deferd.db")
            daemon = try await household.start(configuration: configuration)
            let again = try daemon.connect()
            #expect(before.count > 250)
            for (id, number) in before {
                let job = try await again.wait(id)
                #expect(job["result"]?.int == number, "job \(id)")
            }
            #expect(try await again.call("job.get", .job(held))["state"] == "queued")
            let piece = try await again.call("job.result", ["job": JSON(large), "length": 100_000])
            #expect(piece["size"]?.int == Sample.content.count)
            #expect(Data(base64Encoded: piece["data"]?.string ?? "") == Data(Sample.content))
            _ = try await again.call("job.remove", .job(large))
            try await daemon.stop()
            let state = try await Self.verify(daemon.state, in: household.directory)
            #expect(state.end == .code(0), "\(state)")
        }
    }

    @Test func backup_leavesWhatIsThere_andNothingOfItsOwn() async throws {
        try await Daemon.run { daemon in
            let file = try daemon.directory.write("precious", to: "file")
            let (end, _, errors) = try await Self.deferctl(daemon, "backup", file)
            #expect(end == .code(74) && errors.contains("already exists"), "\(errors)")
            #expect(try Files.bytes(file) == Array("precious".utf8))
            let (elsewhere, _, reason) = try await Self.deferctl(daemon, "backup", daemon.directory.path + "/no/file")
            #expect(elsewhere == .code(74) && reason.contains("cannot be written"), "\(reason)")
            let wire = try daemon.connect()
            #expect(try await wire.refusal("server.backup", ["offset": 0]).code == -32001)
            let size = try await wire.call("server.backup")["size"]?.int ?? 0
            #expect(size > 4096)
            let other = try await daemon.connect().call("server.backup")["size"]?.int ?? 0
            #expect(other > 4096, "another connection has its own")
            let piece = try await wire.call("server.backup", ["offset": 0, "length": 15])
            #expect(Data(base64Encoded: piece["data"]?.string ?? "") == Data("SQLite format 3".utf8))
            #expect(try await wire.call("server.backup", ["offset": JSON(size)])["eof"] == true)
            #expect(try await wire.call("server.backup")["size"]?.int == size, "its own is replaced")
            #expect(!Files.names(in: daemon.state).contains { $0.contains("backup") })
        }
    }

    @Test func backup_leavesNoDraft_whenItIsInterrupted() async throws {
        try await TemporaryDirectory.with { directory in
            let (pieces, piece) = AsyncStream.makeStream(of: Void.self)
            try await FakeDaemon.with { daemon in
                if let call = daemon.call() { daemon.answer(call, ["size": 1_000_000]) }
                // The first piece is never sent.
                if daemon.call() != nil { piece.yield() }
                piece.finish()
                daemon.waitForEnd()
            } _: { socket in
                let backup = try ChildProcess([
                    BuiltProgram.deferctl, "--socket", socket, "backup", directory.path + "/b.db",
                ])
                for await _ in pieces { break }
                #expect(Files.names(in: directory.path).count == 1)
                backup.send(signal: SIGINT)
                #expect(try await backup.end() == .code(75), "\(backup.errorText)")
                #expect(Files.names(in: directory.path).isEmpty)
            }
        }
    }

    @Test func verification_saysWhatIsWrong_andWhoIsInTheWay() async throws {
        try await Household.with { household in
            let daemon = try await household.start()
            for number in 0..<200 {
                _ = try await daemon.connect().submit(.value(JSON(number), ["label": "label", "delay": 1000]))
            }
            let busy = try await Self.verify(daemon.state, in: household.directory)
            #expect(busy.end == .code(69) && busy.errors.contains("in use"), "\(busy)")
            try await daemon.stop()
            let names = Files.names(in: daemon.state)
            let path = daemon.state + "/deferd.db"
            var bytes = try Files.bytes(path)
            for index in 5000..<bytes.count where index % 4096 > 8 { bytes[index] = 0xa5 }
            try Data(bytes).write(to: URL(fileURLWithPath: path))
            let damaged = try await Self.verify(daemon.state, in: household.directory)
            #expect(damaged.end == .code(65) && damaged.output.contains("damaged"), "\(damaged)")
            #expect(damaged.errors.contains("not whole"), "\(damaged)")
            #expect(try Files.bytes(path) == bytes && Files.names(in: daemon.state) == names, "nothing is changed")
            let missing = try await Self.verify(household.directory.path + "/none", in: household.directory)
            #expect(missing.end == .code(78) && missing.errors.contains("no database"), "\(missing)")
        }
    }

    @Test(.enabled(if: geteuid() == 0, "this needs root"))
    func verification_isDoneAsTheOwner_whenRootAsks() async throws {
        try await Household.with { household in
            let daemon = try await household.start()
            _ = try await daemon.connect().submit(.value(1, ["delay": 1000]))
            try await daemon.stop()
            let directory = household.directory.path
            let owner = try SystemProgram(["/usr/bin/chown", "-R", "64001:64001", daemon.state])
            #expect(owner.status == 0)
            func verify() async throws -> (end: ChildProcess.End, output: String, errors: String) {
                try await Self.verify(daemon.state, in: household.directory)
            }
            // Where only root may pass, it cannot look.
            try #require(chmod(directory, 0o700) == 0)
            #expect(try await verify().end != .code(0))
            try #require(chmod(directory, 0o755) == 0)
            let whole = try await verify()
            #expect(whole.end == .code(0) && whole.output.contains("whole: 1 job"), "\(whole)")
            // Nor can it read files that the owner cannot.
            try #require(chown(daemon.state + "/deferd.db", 0, 0) == 0)
            try #require(chmod(daemon.state + "/deferd.db", 0o600) == 0)
            #expect(try await verify().end != .code(0))
        }
    }
}

/// Submissions without a pause, and which job each became.
private final class Load: Sendable {
    private let state = Mutex<(answered: [Int: Int], goesOn: Bool)>(([:], true))

    var answered: [Int: Int] { state.withLock(\.answered) }

    func end() { state.withLock { $0.goesOn = false } }

    func submit(from first: Int, _ wire: Wire) async {
        var number = first
        while state.withLock(\.goesOn), let id = try? await wire.submit(.value(JSON(number))) {
            state.withLock { $0.answered[id] = number }
            number += 1
        }
    }
}
