import Foundation
import Glibc
import JobModel
import TestSupport
import Testing

/// Starting: which starts fail and with which message, without harm to other daemons.
@Suite struct StartTests {
    /// Runs a daemon that must not start, and gives its exit code and the one line it says.
    private func refusal(
        in directory: TemporaryDirectory, configuration: String = "", flags: [String] = [],
        environment: [String: String] = [:], sourceLocation: SourceLocation = #_sourceLocation
    ) async throws -> (code: ChildProcess.End, line: String) {
        let command = try Daemon.command(in: directory, configuration: configuration, flags: flags)
        let (end, _, errors) = try await ChildProcess.run(command, environment: environment)
        let lines = errors.split(separator: "\n").filter { $0.hasPrefix("deferd:") }
        #expect(lines.count == 1, "\(errors)", sourceLocation: sourceLocation)
        return (end, lines.last.map(String.init) ?? "")
    }

    // MARK: - Rest

    @Test func descriptors_areAsManyAsTheSystemAllows() async throws {
        try await Daemon.run { daemon in
            let limits = try String(contentsOfFile: "/proc/\(daemon.pid)/limits", encoding: .utf8)
            let line = try #require(limits.split(separator: "\n").first { $0.hasPrefix("Max open files") })
            let numbers = line.split(separator: " ").compactMap { Int($0) }
            #expect(numbers.count == 2 && numbers[0] == numbers[1])
        }
    }

    // MARK: - Sockets and state

    @Test func secondDaemon_isRefused_onTheSocketOrStateOfALiveOne() async throws {
        try await Daemon.run { daemon, wire in
            let job = try await wire.submit(.value(1, ["delay": 1000]))
            for (flag, path) in [("--socket", daemon.socket), ("--state-directory", daemon.state)] {
                try await TemporaryDirectory.with { other in
                    let (code, line) = try await refusal(in: other, flags: [flag, path])
                    #expect(code == .code(69))
                    #expect(line.contains(path))
                }
                #expect(try await wire.call("job.get", .job(job))["state"] == "scheduled")
                #expect(try await daemon.connect().call("server.info")["pid"]?.int == Int(daemon.pid))
            }
        }
    }

    @Test(arguments: ["--socket", "--state-directory"])
    func path_isRefused_whenItCannotBeOne(flag: String) async throws {
        try await Stage.with {
            try await TemporaryDirectory.with { directory in
                let file = try directory.write("precious", to: "file")
                mkdir(directory.path + "/directory", 0o700)
                let long = directory.path + "/" + String(repeating: "x", count: 120)
                let sockets = [directory.path + "/directory", long, "/proc/deferd-e2e/socket"]
                for path in [file, file + "/below"] + (flag == "--socket" ? sockets : ["/proc/deferd-e2e"]) {
                    let (code, line) = try await refusal(in: directory, flags: [flag, path])
                    #expect(code == .code(78), "\(path)")
                    #expect(line.contains(path), "\(line)")
                }
                #expect(try Files.bytes(file) == Array("precious".utf8))
            }
        }
    }

    @Test func state_isForItsOwnerOnly() async throws {
        try await Daemon.run { daemon in
            _ = try await daemon.connect().succeed(.value("secret"))
            for name in [""] + Files.names(in: daemon.state).map({ "/" + $0 }) {
                let mode = try Files.mode(of: daemon.state + name)
                #expect(mode & 0o077 == 0, "\(name) has mode \(String(mode, radix: 8))")
            }
        }
    }

    @Test func database_isRefused_andLeftAsItIs() async throws {
        try await Household.with { household in
            let daemon = try await household.start()
            try await daemon.stop()
            let path = daemon.state + "/deferd.db"
            let good = try Files.bytes(path)
            var (middle, otherVersion) = (good, good)
            for index in 5000..<good.count where index % 4096 > 8 { middle[index] = 0xa5 }
            // PRAGMA user_version
            otherVersion[63] = 9
            let refused: [(bytes: [UInt8], code: Int32)] = [
                (middle, 65), (Array("This is no database at all, but text.\n".utf8), 65), (otherVersion, 78),
            ]
            for (bytes, code) in refused {
                try Data(bytes).write(to: URL(fileURLWithPath: path))
                for _ in 0..<2 {
                    let (end, line) = try await refusal(in: household.directory)
                    #expect(end == .code(code))
                    #expect(line.contains(daemon.state) && (code == 65 || line.contains("version 8")), "\(line)")
                    #expect(try Files.bytes(path) == bytes, "it was changed")
                }
            }
            try Data(good).write(to: URL(fileURLWithPath: path))
            try await household.start().stop()
        }
    }

    @Test func directories_areMade_whenThereAreNone() async throws {
        try await Household.with { household in
            let deep = household.directory.path + "/a/b"
            let daemon = try await household.start(flags: [
                "--state-directory", deep + "/state", "--downloads-directory", deep + "/downloads",
            ])
            try await GuidedOrigin.run({ _, _ in .whole(Sample.content, etag: "\"1\"") }) { origin in
                let result = try await daemon.connect().succeed(.download(origin.url("/f"), to: "f"))
                #expect(result["path"]?.string?.hasPrefix(deep + "/downloads/") == true)
            }
            try await daemon.stop()
        }
    }

    @Test(.enabled(if: geteuid() != 0, "root may write everywhere"))
    func stateDirectory_isRefused_whenItCannotBeWritten() async throws {
        try await TemporaryDirectory.with { directory in
            mkdir(directory.path + "/locked", 0o500)
            let (code, _) = try await refusal(in: directory, flags: ["--state-directory", directory.path + "/locked"])
            #expect(code == .code(78))
        }
    }

    // MARK: - Command line

    @Test func commandLine_tellsUsage_whenItIsWrong() async throws {
        for arguments in [["--wat"], ["extra"], ["--config"]] {
            let (end, output, errors) = try await ChildProcess.run([BuiltProgram.deferd] + arguments)
            #expect(end == .code(64), "\(arguments)")
            #expect(output.isEmpty)
            #expect(errors.contains("Usage: deferd"))
        }
        let (help, text, _) = try await ChildProcess.run([BuiltProgram.deferd, "--help"])
        #expect(help == .code(0))
        for flag in ["--config", "--socket", "--state-directory", "--downloads-directory", "--log-level", "--check"] {
            #expect(text.contains(flag))
        }
        let (version, number, _) = try await ChildProcess.run([BuiltProgram.deferd, "--version"])
        #expect(version == .code(0))
        #expect(number.wholeMatch(of: /\d+\.\d+\.\d+\n/) != nil)
    }

    /// With `--check` there never is a handler, and what it prints finds no room before somebody has looked.
    @Test func hangUp_isIgnored_beforeThereIsAHandler() async throws {
        try await TemporaryDirectory.with { directory in
            let full = directory.path + "/full"
            try #require(mkfifo(full, 0o600) == 0)
            let fill = #"exec 1<>"$0"; dd if=/dev/zero of="$0" bs=4096 count=1024 oflag=nonblock 2>&-; exec "$@""#
            let process = try ChildProcess(
                ["/bin/sh", "-c", fill, full] + Daemon.command(in: directory) + ["--check"])
            var isIgnored = false
            while !isIgnored, let status = try? String(contentsOfFile: "/proc/\(process.pid)/status", encoding: .utf8),
                !status.contains("State:\tZ")
            {
                let mask = status.firstMatch(of: /SigIgn:\s*([0-9a-f]+)/).flatMap { UInt64($0.1, radix: 16) } ?? 0
                isIgnored = mask & 1 << UInt64(SIGHUP - 1) != 0
            }
            try #require(isIgnored)
            process.send(signal: SIGHUP)
            let reader = try FileHandle(forReadingFrom: URL(filePath: full))
            #expect(reader.availableData.count >= 4096)
            #expect(try await process.end() == .code(0), "\(process.errorText)")
        }
    }

    @Test func serviceManager_isToldWhyAStartFails() async throws {
        try await Stage.with {
            try await TemporaryDirectory.with { directory in
                let manager = try Readiness(in: directory)
                defer { manager.close() }
                let command = try Daemon.command(in: directory, configuration: "limits:\n  links: many\n")
                let (end, _, _) = try await ChildProcess.run(command, environment: ["NOTIFY_SOCKET": manager.path])
                #expect(end == .code(78))
                for text in ["deferd.yaml:2: limits.links", "ERRNO=\(EINVAL)", "EXIT_STATUS=78"] {
                    _ = try await manager.statuses.next("\(text)") { $0.contains(text) }
                }
            }
        }
    }

    /// The unit hides the kernel's word for it.
    @Test func boot_isTheOneThatTheUnitNames() async throws {
        let boot = "00112233445566778899aabbccddeeff"
        try await Daemon.run(environment: ["DEFERD_BOOT": boot]) { daemon in
            let names = ["deferd.db", "deferd.db-wal"]
            let isThere = try names.contains { try Files.bytes(daemon.state + "/" + $0).contains(Array(boot.utf8)) }
            #expect(isThere)
        }
    }

    @Test func serviceManager_isToldWhoTheServiceIs() async throws {
        try await Daemon.run { daemon in try await daemon.status(containing: "MAINPID=\(daemon.pid)") }
    }
}
