import ArgumentParser
import JobModel
import Testing

@testable import DeferctlCommands

/// The verb that the words give.
private func parsed<Verb>(_ words: String...) throws -> Verb {
    try #require(try DeferctlCommand.parseAsRoot(words) as? Verb)
}

@Suite struct SpecBuildingTests {
    private let digest = String(repeating: "a", count: 64)

    @Test func download_becomesASpec() throws {
        let command: DownloadCommand = try parsed(
            "download", "--exists", "rename", "--checksum", digest, "--mirror", "https://m1/", "--mirror",
            "https://m2/", "--rate", "1.5M", "--segments", "8", "-H", "X-A: 1", "-H", "x-a:2", "--queue", "slow",
            "--priority", "-5", "--delay", "1.5", "--timeout", "60", "--deadline", "10m", "--retries", "0", "--key",
            "k", "--tag", "a", "--tag", "b", "--label", "the tool", "--to", "tools/t", "https://example.org/t")
        let spec: JSON = [
            "source": [
                "type": "download", "url": "https://example.org/t", "path": "tools/t", "headers": ["X-A": "1, 2"],
                "exists": "rename", "checksum": .string("sha256:" + digest),
                "mirrors": ["https://m1/", "https://m2/"], "rate": 1_500_000, "segments": 8,
            ],
            "queue": "slow", "priority": -5, "delay": 1.5, "timeout": 60, "deadline": 600, "retry": ["max": 0],
            "key": "k", "tags": ["a", "b"], "label": "the tool",
        ]
        let entry = DownloadEntry(url: command.urls[0])
        #expect(command.options.spec(source: try command.source(entry, isOwn: false)) == spec)
        // What the command line can say, the daemon's own reader takes.
        _ = try JobSpecReader.spec(spec, limits: JobLimits())
    }

    @Test func equalFields_becomeOne_asTheirKindWants() throws {
        let command: DownloadCommand = try parsed(
            "download", "-H", "Cookie: a=1", "-H", "X: 1", "-H", "cookie: b=2", "-H", "x: 2", "https://example.org/t")
        let source = try command.source(DownloadEntry(url: command.urls[0]), isOwn: false)
        #expect(source["headers"] == ["Cookie": "a=1; b=2", "X": "1, 2"])
    }

    @Test func upload_sendsWhatWasNamed() throws {
        let command: UploadCommand = try parsed(
            "upload", "--method", "post", "--checksum", digest, "-H", "X-A: 1", "tools/t", "https://example.org/t")
        let spec: JSON = [
            "source": [
                "type": "upload", "url": "https://example.org/t", "path": "tools/t", "method": "POST",
                "headers": ["X-A": "1"], "checksum": .string("sha256:" + digest),
            ]
        ]
        #expect(command.options.spec(source: try command.source(isOwn: false)) == spec)
        _ = try JobSpecReader.spec(spec, limits: JobLimits())
        let plain: UploadCommand = try parsed("upload", "t", "https://example.org/t")
        #expect(try plain.source(isOwn: false).names == ["type", "url", "path"])
    }

    @Test(
        arguments: [
            ([], "./"), (["--to", "d/"], "d/"), (["--to", "d/x"], "d/x"), (["--exists", "replace"], "b"),
            (["--exists", "validate", "--to", "d/"], "d/b"), (["https://a/c"], "b"),
            (["--to", "d", "https://a/c"], "d/b"),
        ] as [([String], String)])
    func download_isNamedByServer_unlessNamed(options: [String], path: String) throws {
        let words = ["download", "https://a/b"] + options
        let command = try #require(try DeferctlCommand.parseAsRoot(words) as? DownloadCommand)
        #expect(try command.source(DownloadEntry(url: "https://a/b"), isOwn: false)["path"]?.string == path)
    }

    @Test func after_putsTheSourceIntoALink() async throws {
        func spec(_ words: String...) async throws -> JSON {
            let words = ["fetch", "--timeout", "5"] + words + ["https://a/{{b"]
            let command = try #require(try DeferctlCommand.parseAsRoot(words) as? FetchCommand)
            let spec = command.options.spec(source: try await command.request.source(type: .url, url: command.url))
            _ = try JobSpecReader.spec(spec, limits: JobLimits())
            return spec
        }
        func wait(_ id: JSON) -> JSON { ["type": "job", "job": id] }
        func list(_ mode: JSON, _ ids: JSON...) -> JSON {
            let jobs = ids.map { ["source": wait($0), "then": [["then": ["return": nil]]]] as JSON }
            return ["type": "list", "jobs": .array(jobs), "mode": mode]
        }
        let step: JSON = ["source": ["type": "url", "url": #"https://a/\{{b"#], "timeout": 5]
        #expect(try await spec("--after", "3") == ["source": wait(3), "then": [["then": step]]])
        #expect(try await spec("--after-any", "3") == ["source": wait(3), "then": [["both": step]]])
        #expect(
            try await spec("--after", "3,4", "--after", "5") == [
                "source": list("all", 3, 4, 5), "then": [["then": step]],
            ])
        #expect(try await spec("--after-any", "3 4") == ["source": list("settled", 3, 4), "then": [["both": step]]])
        #expect(
            try await spec("--after", "3", "--after-any", "4") == [
                "source": wait(3), "then": [["then": ["source": list("settled", 4)]], ["then": step]],
            ])
    }

    @Test func list_hasNamesDigestsAndMirrors() throws {
        for word in ["sha256:" + digest, digest] {
            let entry = try DownloadEntry(line: "  https://a/b\thttps://c/d \(word)  name ")
            #expect(entry.url == "https://a/b" && entry.mirrors == ["https://c/d"] && entry.name == "name")
            #expect(entry.checksum?.string == "sha256:" + digest)
        }
        for line in [
            "a/b", "out=x", "https://a/b one two", "https://a/b /etc/passwd", "https://a/b sha-256:\(digest)",
            "https://a/b SHA256=\(digest)", "https://a/b sha224:\(digest.prefix(56))",
        ] {
            #expect(throws: CommandFailure.self) { try DownloadEntry(line: line) }
        }
    }

    @Test func options_becomeMembers() throws {
        let command: FetchCommand = try parsed(
            "fetch", "--at", "2099-12-01T08:30:00Z", "--held", "--notify", "--key", "k", "--key-until", "finished",
            "--on", "ada", "https://a/")
        #expect(command.options.detach)
        #expect(
            command.options.spec(source: [:]) == [
                "source": [:], "notBefore": "2099-12-01T08:30:00.000Z", "key": "k", "keyUntil": "finished",
                "held": true, "notify": true, "requires": ["node": "ada"],
            ])
    }

    @Test func schedule_hasAValidLabel_whateverTheCommand() throws {
        for argument in [String(repeating: "{{", count: 120), String(repeating: "x{{", count: 84) + "\"", "é{{\u{1}"] {
            let command: ScheduleAddCommand = try parsed("schedule", "add", "s", "--daily", "--", "./x", argument)
            let spec = command.spec(source: ["type": "value", "value": 1])
            _ = try JobSpecReader.spec(spec, limits: JobLimits())
            #expect(spec["label"]?.string?.hasPrefix("./x ") == true)
        }
    }

    @Test func schedule_isOfTheNamedUser() throws {
        for user in ["root", "0"] {
            let command: ScheduleShowCommand = try parsed("schedule", "show", "s", "--owner", user)
            #expect(command.schedule.owner == 0)
        }
        #expect(throws: (any Error).self) {
            try DeferctlCommand.parseAsRoot(["schedule", "show", "s", "--owner", "no such user"])
        }
    }

    @Test func fetch_sendsDataAndFiles_andNothingThatWasNotNamed() async throws {
        func source(_ words: String...) async throws -> JSON {
            let words = ["fetch", "https://a/"] + words
            let command = try #require(try DeferctlCommand.parseAsRoot(words) as? FetchCommand)
            return .object(try await command.request.source(type: .url, url: command.url))
        }
        #expect(try await source() == ["type": "url", "url": "https://a/"])
        #expect(try await source("-d", "a=b") == ["type": "url", "url": "https://a/", "method": "POST", "body": "a=b"])
        for (bytes, member, text) in [
            ([0x68, 0x69, 0x0A], "body", "hi\n"), ([0xFF, 0x00], "bodyBase64", "/wA="),
        ] as [([UInt8], String, String)] {
            let file = try TemporaryFile(bytes)
            let source = try await source("--method", "PUT", "--data", "@\(file.path)")
            #expect(source[member]?.string == text && source["method"] == "PUT")
        }
    }

    @Test(
        arguments: [
            ("https://example.org/a/tool.tgz", "tool.tgz"), ("https://example.org/a/tool.tgz?x=/y#z", "tool.tgz"),
            ("https://example.org/a%20b", "a b"), ("https://example.org/a%2Fb", "a%2Fb"),
            ("https://e.org/a%zz", "a%zz"),
            ("https://e.org/%FF", "%FF"), ("https://example.org/", nil), ("https://example.org", nil),
            ("https://e.org/..", nil), ("https://e.org/%2e%2e", nil), ("https://e.org/%00", "%00"), ("", nil),
        ] as [(String, String?)])
    func download_isCalledAsTheEndOfItsURL(url: String, name: String?) {
        #expect(DownloadEntry.name(in: url) == name)
    }

    @Test(arguments: [
        ["download", "--exists", "replace", "https://example.org/"], ["download"], ["download", "https://a/b", "c"],
        ["download", "a/b"],
        ["download", "-i", "list", "https://a/b"], ["download", "--checksum", "0", "https://a/b", "https://a/c"],
        ["fetch", "--delay", "1", "--at", "6:00", "https://a/"], ["fetch", "--key-until", "finished", "https://a/"],
        ["fetch", "--data-json", "{", "https://a/"], ["fetch", "-d", "a", "--data-json", "1", "https://a/"], ["fetch"],
        ["schedule", "add", "x", "y.json"], ["schedule", "add", "x", "--daily", "--every", "2h", "--", "ls"],
        ["schedule", "add", "x", "y.json", "--daily", "--", "ls"], ["fetch", "--header", "nocolon", "https://a/"],
        ["fetch", "--at", "2025-12-01 08:30", "https://a/"], ["set", "9", "--at", "yesterday 9:00"],
        ["set", "9", "--at", "2025-12-01T08:30:00Z"],
        ["fetch", "--retries", "-1", "https://a/"], ["fetch", "--after=0", "https://a/"],
        ["fetch", "--after=3,,x", "https://a/"],
        ["fetch", "--timeout", "soon", "https://a/"],
        ["fetch", "--delay", "nan", "https://a/"], ["json", "https://a/", "no-pointer"], ["wait"], ["cancel", "x"],
        ["list", "--state", "lost"], ["list", "--all", "--limit", "3"], ["list", "--limit", "0"],
        ["watch", "--tag", "a", "1"], ["retry", "--from", "middle", "1"], ["download", "--rate", "0", "https://a/b"],
        ["download", "--segments", "0", "https://a/b"], ["download", "--segments", "17", "https://a/b"],
        ["upload", "x"], ["upload", "--method", "GET", "x", "https://a/b"], ["nonsense"],
        ["show", "--children", "5000", "1"], ["run", "--stdin", "--input", "1", "x"], ["run", "-e", "A", "x"],
        ["run", "-e", "=a", "x"], ["run", "--scratch", "-C", "/", "x"], ["fetch", "-o", "f", "--detach", "https://a/"],
        ["fetch", "-o", "-", "--held", "https://a/"], ["schedule", "add", "x", "y.json", "--daily", "-e", "A=1"],
    ])
    func parse_isRefusedAsUsage(arguments: [String]) {
        let error = #expect(throws: (any Error).self) { try DeferctlCommand.parseAsRoot(arguments) }
        #expect(error.map { DeferctlCommand.exitCode(for: $0).rawValue } == Status.usage.rawValue)
    }

    @Test(arguments: [["-h"], ["--help"], ["--detach", "--help"], ["--version"]])
    func run_showsItsHelp_whenThatStandsBeforeTheProgram(arguments: [String]) {
        let error = #expect(throws: (any Error).self) { try DeferctlCommand.parseAsRoot(["run"] + arguments) }
        #expect(error.map { DeferctlCommand.exitCode(for: $0).rawValue } == Status.ok.rawValue)
    }

    @Test func run_leavesHelpToTheProgram_whenItStandsBehindIt() throws {
        for arguments in [["ls", "--help"], ["--", "--help"]] {
            _ = try #require(try DeferctlCommand.parseAsRoot(["run"] + arguments) as? RunCommand)
        }
    }

    @Test(arguments: [
        ["--socket", "s", "--json", "--utc", "--color", "never", "run"],
        ["run", "--socket", "s", "--json", "--utc", "--color", "never"],
        ["--socket", "t", "--color", "always", "run", "--quiet", "--socket=s", "--json", "--utc", "--color", "never"],
    ])
    func run_hasTheOptionsOfEveryVerb_beforeOrAfterIt(words: [String]) throws {
        let command = try #require(try DeferctlCommand.parseAsRoot(words + ["ls", "--json"]) as? RunCommand)
        let global = command.global
        #expect(global.socket == "s" && global.json && global.utc && global.color == .never)
        #expect(command.words == ["ls", "--json"])
        let plain: RunCommand = try parsed("run", "ls", "--json")
        #expect(!plain.global.json)
    }

    @Test(arguments: [
        ["fetch", "--at", "90", "https://a/"], ["set", "9", "--at", "90"], ["list", "--since", "2026"],
    ])
    func time_isRefused_withTheReason(arguments: [String]) throws {
        let error = try #require(throws: (any Error).self) { try DeferctlCommand.parseAsRoot(arguments) }
        #expect(DeferctlCommand.message(for: error).contains("or a duration with its unit, such as 90s"))
    }

    @Test func run_namesTheProgramByItsShortestPath() throws {
        #expect(try CommandOptions.absolute("/tmp/./x//prog.sh", in: "/y") == "/tmp/x/prog.sh")
        #expect(try CommandOptions.absolute("/tmp/../x") == "/tmp/../x")
        #expect(try CommandOptions.absolute("/") == "/")
        #expect(try CommandOptions.absolute("./a", in: "/y/z/") == "/y/z/a")
        #expect(try CommandOptions.absolute("a") == CommandOptions.absolute(".") + "/a")
        #expect(try CommandOptions.absolute("/\u{301}a").utf8.elementsEqual("/\u{301}a".utf8))
    }

    @Test func run_takesVariables_asTheyAreWritten() throws {
        let command: RunCommand = try parsed("run", "-e", "A=b=c", "--env", "B=", "-e", "C=\u{301}", "x")
        #expect(command.surroundings.variables == [["A", "b=c"], ["B", ""], ["C", "\u{301}"]])
    }

    @Test func rate_takesUnits() {
        let rates = [("500", 500), ("500k", 500_000), ("2M", 2_000_000), ("1.5G", 1_500_000_000)]
        for (text, bytes) in rates { #expect(ByteRate(argument: text)?.bytes == bytes) }
        for text in ["", "k", "-5", "0", "0.2", "1T", "1e300", "nan", "inf", "5 k"] {
            #expect(ByteRate(argument: text) == nil, "\(text)")
        }
    }
}
