import Foundation
import Glibc
import JobModel
import TestSupport
import Testing

/// `--check`, and which setting wins over which.
@Suite struct ConfigurationTests {
    private func check(
        _ yaml: String, environment: [String: String] = [:], flags: [String] = []
    ) async throws -> (end: ChildProcess.End, output: String, errors: String) {
        try await TemporaryDirectory.with { directory in
            let command = try Daemon.command(in: directory, configuration: yaml, flags: flags) + ["--check"]
            let result = try await ChildProcess.run(command, environment: environment)
            #expect(Files.names(in: directory.path) == ["deferd.yaml"], "checking makes nothing")
            return result
        }
    }

    @Test(
        arguments: [
            ("nonsense: 1", 1, "nonsense"), ("limits:\n  lines: 5", 2, "limits.lines"),
            ("limits:\n  line: many", 2, "limits.line"),
            ("limits:\n  line: 5", 2, "limits.line"), ("limits:\n  line: [1]", 2, "limits.line"),
            ("limits: 5", 1, "limits"),
            ("\n\nlimits:\n\n  inFlight: 0", 5, "limits.inFlight"), ("limits:\n  inFlight: 1.5", 2, "limits.inFlight"),
            ("limits:\n  outbound: -1", 2, "limits.outbound"), ("socket:\n  mode: 999", 2, "socket.mode"),
            ("socket:\n  mode: rw", 2, "socket.mode"), ("socket:\n  path: relative", 2, "socket.path"),
            ("socket:\n  path: /" + String(repeating: "s", count: 107), 2, "socket.path"),
            ("state:\n  directory: here", 2, "state.directory"), ("downloads:\n  roots: [/a, b]", 2, "downloads.roots"),
            ("downloads:\n  roots: /a", 2, nil), ("queues:\n  default: 0", 2, "queues"),
            ("queues:\n  default: two", 2, "queues.default"), ("queues: [a]", 1, "queues"),
            ("http:\n  perHost: 0", 2, "http.perHost"), ("http:\n  connectTimeout: soon", 2, "http.connectTimeout"),
            ("http:\n  proxy: nowhere", 2, "http.proxy"), ("http:\n  noProxy: [a b]", 2, "http.noProxy"),
            ("http:\n  retry:\n    max: -1", 3, "http.retry.max"),
            ("http:\n  certificates: /none", 2, "http.certificates"),
            ("http:\n  clientCertificates: {}\n  perHost: 0", 3, "http.perHost"),
            (
                "http:\n  clientCertificates:\n    a.org: {certificate: /none, key: /none}", 3,
                "http.clientCertificates"
            ),
            ("http:\n  clientCertificates:\n    a.org: {key: /none}", 3, "http.clientCertificates"),
            ("http:\n  credentials: [a]", 2, "http.credentials"),
            ("http:\n  credentials:\n    a.org: {credential: t}\n    b.org: {}", 4, "http.credentials"),
            ("http:\n  credentials:\n    a.org/path: t", 3, "http.credentials"),
            ("http:\n  credentials:\n    a.org: ../t", 3, "http.credentials"),
            ("http:\n  credentials:\n    a.org: {credential: t, header: Host}", 3, "http.credentials"),
            (
                "http:\n  credentials:\n    a.org:\n      credential: t\n      users: [no-such-user]", 5,
                "http.credentials"
            ),
            ("http:\n  credentials:\n    a.org:\n      credential: t\n      secret: s", 5, "http.credentials"),
            ("policy:\n  schemes: 5", 2, nil),
            ("policy:\n  denyAddresses: [300.0.0.0/8]", 2, "policy.denyAddresses"),
            ("policy:\n  denyAddresses: [10.0.0.0/40]", 2, "policy.denyAddresses"),
            ("policy:\n  allowAddresses: [a]", 2, "policy.allowAddresses"),
            ("retention:\n  age: -1", 2, "retention.age"), ("retention:\n  count: x", 2, "retention.count"),
            ("log:\n  level: loud", 2, "log.level"), ("access:\n  adminGroup: [a]", 2, "access.adminGroup"),
            ("limits:\n  line: 4096\n  line: 8192", 3, "limits.line"),
            ("node:\n  name: a/b", 2, "node.name"), ("node:\n  lease: 2", 2, "node.lease"),
            ("programs:\n  a: {command: [x]}\n", 2, "programs"),
            ("programs:\n  a:\n    command: [/x]\n    timeout: no\n", 4, "programs.a.timeout"),
            ("programs:\n  a:\n    command: [/x]\n    colour: red\n", 4, "programs"),
            ("programs:\n  any: perhaps\n", 2, "programs"), ("programs:\n  any: {command: [/x]}\n", 2, "programs"),
            ("programs:\n  a: {timeout: 3}\n", 2, "programs"),
            ("programs:\n  a:\n    command: [/x]\n    environment:\n      \"\": x\n", 5, "programs"),
            ("programs:\n  a:\n    command: [/x]\n    environment:\n      DEFERD_JOB: x\n", 5, "programs"),
            ("programs:\n  a:\n    command: [/x]\n    directory: x\n", 4, "programs"),
            ("programs:\n  a:\n    command: [/x]\n    variables: [A, LD_PRELOAD]\n", 4, "programs"),
            ("programs:\n  a:\n    command: [/x]\n    output: 0\n", 4, "programs"),
            ("hooks:\n  finished: gone", 2, "hooks.finished"),
            ("limits: {line: 4096", nil, nil), ("\tlimits: 1", nil, nil), ("- a\n- b", 1, nil),
            ("limits:\n  inFlight: 1\n---\nqueues: {}\n", 4, "second document"),
        ] as [(String, Int?, String?)])
    func check_saysWhere_whenConfigurationIsWrong(_ yaml: String, _ line: Int?, _ key: String?) async throws {
        let (end, output, errors) = try await check(yaml)
        // Several keys may be meant; the valid ones are listed without choosing one.
        if end == .code(0), key == nil, line != nil { return }
        #expect(end == .code(78), "\(output)\(errors)")
        #expect(output.isEmpty)
        #expect(errors.split(separator: "\n").count == 1, "\(errors)")
        #expect(errors.contains("deferd.yaml"), "\(errors)")
        if let line { #expect(errors.contains("deferd.yaml:\(line)"), "\(errors)") }
        if let key { #expect(errors.contains(key), "\(errors)") }
    }

    @Test func check_saysAllThatIsWrong_inTheOrderOfTheFile() async throws {
        let yaml = """
            limits:
              line: 5
              wat: 1
              inFlight: 7
            queues:
              default: 0
              good: 3
              b: two
            http:
              proxy: nowhere
              credentials:
                a.org: ../t
                b.org: t
                c.org/path: t
            policy:
              denyAddresses: [300.0.0.0/8]
            socket: 5
            nonsense: 1
            """
        let (end, output, errors) = try await check(
            yaml, environment: ["DEFERD_LIMITS_BODY": "many"], flags: ["--log-level", "loud"])
        #expect(end == .code(78) && output.isEmpty)
        let places = errors.split(separator: "\n").map { line in
            line.split(separator: ": ").dropFirst().prefix(2).map { $0.split(separator: "/").last.map(String.init) }
        }
        #expect(
            places == [
                ["deferd.yaml:2", "limits.line"], ["deferd.yaml:3", "limits.wat"], ["deferd.yaml:6", "queues.default"],
                ["deferd.yaml:8", "queues.b"], ["deferd.yaml:10", "http.proxy"],
                ["deferd.yaml:12", "http.credentials.a.org"], ["deferd.yaml:14", "path"],
                ["deferd.yaml:16", "policy.denyAddresses"],
                ["deferd.yaml:17", "socket"], ["deferd.yaml:18", "nonsense"], ["DEFERD_LIMITS_BODY", "limits.body"],
                ["--log-level", "log.level"],
            ], "\(errors)")
    }

    @Test func emptyVariables_countAsUnset() async throws {
        try await TemporaryDirectory.with { directory in
            let home = directory.path
            try FileManager.default.createDirectory(atPath: home + "/.config/deferd", withIntermediateDirectories: true)
            let file = home + "/.config/deferd/deferd.yaml"
            try Data().write(to: URL(filePath: file))
            // Tests leave out empty variables, env(1) does not.
            let (end, output, errors) = try await ChildProcess.run([
                "/usr/bin/env", "HOME=\(home)", "XDG_RUNTIME_DIR=\(home)", "XDG_CONFIG_HOME=", "XDG_STATE_HOME=",
                BuiltProgram.deferd, "--instance", "user", "--check",
            ])
            #expect(end == .code(0) && output.contains("the file is \(file)"), "\(output)\(errors)")
        }
    }

    @Test func aliases_repeatValues() async throws {
        let (end, _, errors) = try await check("queues:\n  a: &few {concurrency: 2}\n  b: *few\n")
        #expect(end == .code(0), "\(errors)")
        let wrong = try await check("queues:\n  a: &few {concurrency: 0}\n  b: *few\n")
        #expect(wrong.errors.contains("queues.a") && wrong.errors.contains("queues.b"), "\(wrong.errors)")
    }

    @Test func check_saysWhatElseIsWrong_whereTheFileCannotBeRead() async throws {
        let command = [BuiltProgram.deferd, "--config", "/nonexistent/d.yaml", "--instance", "user", "--check"]
        let (end, _, errors) = try await ChildProcess.run(command, environment: ["DEFERD_LIMITS_LINE": "many"])
        #expect(end == .code(78))
        // Settings that the file may contain are not reported as missing.
        #expect(errors.split(separator: "\n").count == 2, "\(errors)")
        #expect(errors.contains("/nonexistent/d.yaml: there is no such file") && errors.contains("DEFERD_LIMITS_LINE"))
    }

    @Test func file_isRefused_whereItIsTooLongOrNone() async throws {
        try await TemporaryDirectory.with { directory in
            func refusal(_ path: String) async throws -> String {
                let (end, _, errors) = try await ChildProcess.run(
                    [BuiltProgram.deferd, "--config", path, "--check"], environment: ["HOME": "/h"])
                #expect(end == .code(78), "\(errors)")
                #expect(errors.contains("\(path): "), "\(errors)")
                return errors
            }
            let long = try directory.write("limits:\n", to: "long.yaml")
            #expect(truncate(long, 1 << 30) == 0)
            #expect(try await refusal(long).contains("is longer than 1048576 bytes, and no more are read; take out"))
            let pipe = directory.path + "/pipe"
            #expect(mkfifo(pipe, 0o600) == 0)
            for path in [pipe, "/dev/zero", directory.path] {
                #expect(try await refusal(path).contains("cannot be read; check"))
            }
        }
        let longest = "#" + String(repeating: " ", count: (1 << 20) - 1)
        #expect(try await check(longest).end == .code(0))
        #expect(try await check(longest + " ").end == .code(78))
    }

    @Test func missingRoots_areWarnedOf_byCheckAndAtTheStart() async throws {
        try await Household.with { household in
            let directory = household.directory.path
            try household.directory.write("", to: "file")
            let yaml = "downloads:\n  roots: [\(directory), \(directory)/gone, \(directory)/file]\n"
            let daemon = try await household.start(configuration: yaml)
            try await daemon.stop()
            let (end, output, errors) = try await ChildProcess.run(
                try Daemon.command(in: household.directory, configuration: yaml) + ["--check"])
            #expect(end == .code(0) && output.hasPrefix("The configuration is good"))
            for said in [errors, daemon.process.errorText] {
                let warnings = said.split(separator: "\n").filter { $0.contains("downloads.roots") }
                #expect(warnings.count == 2 && warnings.allSatisfy { $0.contains("warning") }, "\(said)")
                #expect(said.contains("\"\(directory)/gone\"") && said.contains("\"\(directory)/file\""), "\(said)")
            }
        }
    }

    @Test func check_allowsACommandAsAHook_onlyInAUsersInstance() async throws {
        try await TemporaryDirectory.with { directory in
            let yaml = "hooks:\n  finished: [/bin/true]\n"
            for (instance, code) in [("user", Int32(0)), ("system", 78)] {
                let (end, _, errors) = try await ChildProcess.run(
                    try Daemon.command(in: directory, configuration: yaml) + ["--instance", instance, "--check"])
                #expect(end == .code(code), "\(errors)")
                if code != 0 { #expect(errors.contains("deferd.yaml:2: hooks.finished: must name a program")) }
            }
        }
    }

    @Test func check_warnsOfWhatIsNotThere() async throws {
        try await TemporaryDirectory.with { directory in
            let yaml = """
                socket:
                  group: nobody-has-it
                programs:
                  sh: /bin/sh
                  gone: [/nonexistent/x]
                hooks:
                  finished: [/nonexistent/y]
                access:
                  adminGroup: nobody-has-it
                """
            let (end, _, errors) = try await ChildProcess.run(
                try Daemon.command(in: directory, configuration: yaml) + ["--instance", "user", "--check"])
            #expect(end == .code(0))
            let place = directory.path + "/deferd.yaml"
            #expect(
                errors.contains("warning: \(place):2: socket.group: there is no group \"nobody-has-it\""), "\(errors)")
            #expect(errors.contains("warning: \(place):5: programs.gone: there is no program \"/nonexistent/x\""))
            #expect(errors.contains("warning: \(place):7: hooks.finished: there is no program \"/nonexistent/y\""))
            #expect(errors.contains("warning: \(place):9: access.adminGroup: there is no group \"nobody-has-it\""))
            #expect(errors.split(separator: "\n").count == 4, "\(errors)")
        }
    }

    /// The fuzzer's initial inputs (`make fuzz`).
    @Test func check_saysWhere_orIsContent_whateverTheFileIs() async throws {
        let corpus = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
            .deletingLastPathComponent().appending(path: "Fuzz/Corpus/configuration")
        let files = try FileManager.default.contentsOfDirectory(at: corpus, includingPropertiesForKeys: nil)
        #expect(files.count > 20)
        for file in files {
            let (end, output, errors) = try await ChildProcess.run(
                [BuiltProgram.deferd, "--config", file.path, "--check"], environment: ["HOME": "/h"])
            let isRefused = end == .code(78) && output.isEmpty && errors.contains(file.lastPathComponent)
            #expect(end == .code(0) || isRefused, "\(file.lastPathComponent): \(end) \(errors)")
        }
    }

    @Test func start_saysWhatIsMissing_whenADefaultNeedsIt() async throws {
        let command = [BuiltProgram.deferd, "--instance", "user"]
        let (end, _, errors) = try await ChildProcess.run(command, environment: ["HOME": "/h"])
        #expect(end == .code(78))
        #expect(errors.contains("as XDG_RUNTIME_DIR is not set") && errors.contains("--socket"), "\(errors)")
        // A check needs no socket, so that cron can run it.
        let (good, output, _) = try await ChildProcess.run(command + ["--check"], environment: ["HOME": "/h"])
        #expect(good == .code(0))
        #expect(output == "The configuration is good; there is no file, and the defaults hold.\n")
        let (bad, _, missing) = try await ChildProcess.run(command + ["--check"], environment: [:])
        #expect(bad == .code(78) && missing.contains("as neither XDG_STATE_HOME nor HOME is set"), "\(missing)")
    }

    @Test func variable_winsOverFile_andFlagOverVariable() async throws {
        try await Household.with { household in
            let elsewhere = household.directory.path + "/elsewhere"
            let daemon = try await household.start(
                configuration:
                    "limits:\n  inFlight: 5\n  links: 6\nqueues:\n  default: 3\nstate:\n  directory: /nowhere\n",
                environment: [
                    "DEFERD_LIMITS_INFLIGHT": "7", "DEFERD_STATE_DIRECTORY": "/nowhere/else",
                    "DEFERD_QUEUES": "default=4,other=2", "DEFERD_LIMITS_CONNECTIONSPERUSER": "11",
                ],
                flags: ["--state-directory", elsewhere])
            let wire = try daemon.connect()
            let limits = try await wire.call("server.info")["limits"]
            #expect(limits?["inFlight"] == 7)
            #expect(limits?["links"] == 6)
            #expect(limits?["connectionsPerUser"] == 11)
            let queues = try await wire.call("queue.list")["queues"]?.array ?? []
            #expect(queues.map { [$0["queue"], $0["concurrency"]] } == [["default", 4], ["other", 2]])
            #expect(Files.exists(elsewhere))
            try await daemon.stop()
        }
    }

    @Test func shippedFile_isGood_andHoldsTheDefaults() async throws {
        let root = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
            .deletingLastPathComponent().deletingLastPathComponent()
        let path = root.appendingPathComponent("config/deferd.yaml").path
        let (end, _, errors) = try await ChildProcess.run([BuiltProgram.deferd, "--config", path, "--check"])
        #expect(end == .code(0), "\(errors)")
        let shipped = try String(contentsOfFile: path, encoding: .utf8)
        try await Household.with { household in
            let plain = try await household.start()
            let defaults = try await plain.connect().call("server.info")["limits"]
            let queues = try await plain.connect().call("queue.list")
            try await plain.stop()
            let full = try await household.start(configuration: shipped)
            #expect(try await full.connect().call("server.info")["limits"] == defaults)
            #expect(try await full.connect().call("queue.list") == queues)
            try await full.stop()
        }
    }

    @Test func everyKey_isInTheManual() throws {
        let root = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
            .deletingLastPathComponent().deletingLastPathComponent()
        let shipped = try String(contentsOf: root.appendingPathComponent("config/deferd.yaml"), encoding: .utf8)
        let manual = try String(contentsOf: root.appendingPathComponent("config/man/deferd.yaml.5"), encoding: .utf8)
        var sections: [Substring] = []
        var keys: [String] = []
        for line in shipped.split(separator: "\n") where !line.drop(while: { $0 == " " }).hasPrefix("#") {
            let depth = line.prefix { $0 == " " }.count / 2
            let member = line.drop { $0 == " " }
            let name = member.prefix { $0 != ":" }
            sections = sections.prefix(depth) + [name]
            // A key whose parts have their own lines is not a key itself.
            if member.last != ":" || depth > 0 { keys.append(sections.joined(separator: ".")) }
        }
        // The names of queues are not keys, and the parts of one key are listed below it.
        keys.removeAll { $0.hasPrefix("queues.") || ["http.lowSpeed", "http.retry"].contains($0) }
        keys.append("queues")
        #expect(keys.count > 35)
        for key in keys {
            let variable = "DEFERD_" + key.uppercased().replacing(".", with: "_")
            #expect(manual.contains(".It Cm \(key) Pq Ev \(variable)\n"), "\(key)")
        }
    }
}
