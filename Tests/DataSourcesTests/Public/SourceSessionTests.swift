import DataSources
import DeferredKit
import Foundation
import Logging
import Testing
import TestOrigin

/// The sources as a library's users have them, with the session's own records in place of the daemon's.
@Suite struct SourceSessionTests {
    private static let body = Workbench.bytes(200_000)

    /// Runs `body` with an empty directory.
    private func withDirectory<Value>(_ body: (_ path: String) async throws -> Value) async throws -> Value {
        let path =
            FileManager.default.temporaryDirectory.resolvingSymlinksInPath().path + "/session-\(UUID().uuidString)"
        try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(atPath: path) }
        return try await body(path)
    }

    private func names(_ path: String) -> [String] {
        (FileManager.default.enumerator(atPath: path)?.allObjects as? [String] ?? []).sorted()
    }

    private func bytes(_ path: String) -> [UInt8]? { FileManager.default.contents(atPath: path).map(Array.init) }

    private func failure<Value>(of deferred: Deferred<Value, any Error>) async throws -> SourceError {
        do {
            _ = try await deferred.get()
        } catch let error as SourceError {
            return error
        }
        throw Unexpected()
    }

    private struct Unexpected: Error {}

    // MARK: Downloads

    @Test(arguments: [false, true]) func download_goesOn_whereItBrokeOff(inAnotherSession: Bool) async throws {
        try await ScriptedOrigin.run(Misbehaviour.cut(Self.body, times: 1, etag: "\"a\"")) { origin in
            try await withDirectory { path in
                var options = SourceOptions()
                if inAnotherSession { options.downloads.records = path + "/records" }
                var source = DownloadSource(origin.url("/x"), to: "x", in: path + "/files")
                source.session = try SourceSession(options)
                let error = try await failure(of: source.start())
                #expect(error.code == .network && error.isRetryable)
                #expect(names(path + "/files") == ["x.part"])
                if inAnotherSession {
                    await source.session.shutdown()
                    source.session = try SourceSession(options)
                }
                let file = try await source.start().get()
                #expect(file.resumedFrom == 100_000 && file.status == 206 && file.size == 200_000)
                #expect(bytes(file.path) == Self.body)
                #expect(names(path + "/files") == ["x"])
            }
        }
    }

    @Test func download_beginsAgain_whenItDoesNotResume() async throws {
        try await ScriptedOrigin.run(Misbehaviour.cut(Self.body, times: 1, etag: "\"a\"")) { origin in
            try await withDirectory { path in
                var source = DownloadSource(origin.url("/x"), to: "x", in: path)
                source.resumes = false
                let error = try await failure(of: source.start())
                #expect(error.code == .network)
                #expect(names(path) == [])
                let whole = try await source.start().get()
                #expect(whole.resumedFrom == 0)
            }
        }
    }

    @Test func download_validates_byTheSessionsRecords() async throws {
        try await TestOrigin.run { origin in
            origin["/x"] = OriginResource(Self.body, etag: "\"1\"")
            try await withDirectory { path in
                var source = DownloadSource(origin.url("/x"), to: "x", in: path)
                source.exists = .validate
                let first = try await source.start().get()
                #expect(first.status == 200)
                let second = try await source.start().get()
                #expect(second.status == 304)
                origin["/x"] = OriginResource(Array("new".utf8), etag: "\"2\"")
                let third = try await source.start().get()
                #expect(third.size == 3)
            }
        }
    }

    @Test(arguments: ["../x", "a/../../x", "/etc/x", "link/x", "x\n", "x.part", ""])
    func path_cannotLeaveItsDirectory(target: String) async throws {
        try await TestOrigin.run { origin in
            origin["/x"] = OriginResource(Self.body)
            try await withDirectory { path in
                try FileManager.default.createDirectory(atPath: path + "/files", withIntermediateDirectories: true)
                try FileManager.default.createSymbolicLink(
                    atPath: path + "/files/link", withDestinationPath: path)
                let error = try await failure(
                    of: DownloadSource(origin.url("/x"), to: target, in: path + "/files").start())
                #expect([.policy, .invalid].contains(error.code))
                #expect(names(path) == ["files", "files/link"])
                #expect(origin.log.count("/x") == 0 || target == "link/x")
            }
        }
    }

    @Test func path_mayLieInTheRootDirectory() async throws {
        let error = try await failure(of: DownloadSource("http://127.0.0.1:1/x", to: "/usr").start())
        #expect(error.code == .exists && error.message.contains("\"/usr\" is a directory"), "\(error)")
    }

    /// Two files that their servers name, below one directory.
    @Test func file_hasItsOwnName_whenAnotherBrokeOff() async throws {
        let script: ScriptedOrigin.Script = { request, count in
            let cut = Misbehaviour.cut(Self.body, times: request.path == "/a.iso" ? 1 : 0, etag: "\"a\"")
            return cut(request, count)
        }
        try await ScriptedOrigin.run(script) { origin in
            try await withDirectory { path in
                _ = try await failure(of: DownloadSource(origin.url("/a.iso"), to: "isos/", in: path).start())
                #expect(names(path) == ["isos", "isos/a.iso.part"])
                let file = try await DownloadSource(origin.url("/b.iso"), to: "isos/", in: path).start().get()
                #expect(file.path == path + "/isos/b.iso")
            }
        }
    }

    // MARK: Requests

    @Test func request_isSentAsDescribed() async throws {
        try await TestOrigin.run { origin in
            origin["/x"] = OriginResource(Self.body, type: "image/x; a=b")
            var source = URLSource(origin.url("/x"))
            source.method = "POST"
            source.headers = ["X-Mine": "1"]
            source.body = [0, 255]
            let answer = try await source.start().get()
            #expect(answer.body == Self.body && answer.mediaType == "image/x")
            #expect(answer.headers["content-length"] == "200000")
            let asked = try #require(origin.log.last("/x"))
            #expect(asked.method == "POST" && asked.body == [0, 255] && asked.headers["x-mine"] == "1")
            #expect(asked.headers["user-agent"] == "DataSources/1.0")
        }
    }

    @Test func status_isAFailure_unlessAnyIsAccepted() async throws {
        try await TestOrigin.run { origin in
            var source = URLSource(origin.url("/none"))
            let error = try await failure(of: source.start())
            #expect(error.code == .http && error.status == 404 && !error.isRetryable)
            #expect("\(error)".hasPrefix("http: "))
            source.acceptsAnyStatus = true
            let missing = try await source.start().get()
            #expect(missing.status == 404)
        }
    }

    @Test func value_failsAsParse_whenItIsOfAnotherType() async throws {
        try await TestOrigin.run { origin in
            origin["/x"] = .json(#"{"a": "text", "big": [\#(String(repeating: "1,", count: 300_000))1]}"#)
            let url = origin.url("/x")
            let error = try await failure(of: JSONSource(url, as: Int.self, at: "/a").start())
            #expect(error.code == .parse && error.underlying is DecodingError)
            #expect(try await failure(of: JSONSource(url, as: Int.self, at: "/b").start()).code == .select)
            #expect(try await failure(of: JSONSource(url, as: Int.self, at: "b").start()).code == .invalid)
            // Larger than what is kept in memory while it comes in.
            let numbers = try await JSONSource(url, as: [Int].self, at: "/big").start().get()
            #expect(numbers.count == 300_001)
        }
    }

    @Test(arguments: [["Host": "other"], ["X": "a\r\nY: b"], ["a b": "c"]])
    func request_isRefused_whenItCannotBeMeant(headers: [String: String]) async throws {
        var source = URLSource("http://127.0.0.1:1/")
        source.headers = headers
        #expect(try await failure(of: source.start()).code == .invalid)
        #expect(try await failure(of: URLSource("no url").start()).code == .invalid)
        #expect(throws: SourceError.self) {
            var options = SourceOptions()
            options.policy.denyAddresses = ["everything"]
            _ = try SourceSession(options)
        }
    }

    // MARK: Sessions

    @Test func addresses_areRefusedByDefault_whereCredentialsAre() async throws {
        for host in ["169.254.169.254", "[fe80::1]", "100.100.100.200", "[::ffff:169.254.169.254]"] {
            #expect(try await failure(of: URLSource("http://\(host)/").start()).code == .policy)
        }
    }

    @Test func privateNetworks_areRefused_whenTheOptionsSaySo() async throws {
        try await TestOrigin.run { origin in
            origin["/x"] = OriginResource(text: "x")
            var options = SourceOptions()
            options.policy.denyAddresses = PolicySettings.privateNetworks
            let session = try SourceSession(options)
            for host in ["127.0.0.1", "localhost", "0", "[::1]", "192.168.0.1", "10.1.2.3"] {
                let error = try await failure(of: URLSource(origin.url("/x", host: host), session: session).start())
                #expect(error.code == .policy)
            }
            #expect(origin.log.count("/x") == 0)
        }
    }

    @Test func body_isBounded() async throws {
        try await TestOrigin.run { origin in
            origin["/x"] = OriginResource(Self.body)
            var options = SourceOptions()
            options.limits.body = 199_999
            let session = try SourceSession(options)
            let error = try await failure(of: URLSource(origin.url("/x"), session: session).start())
            #expect(error.code == .tooLarge)
        }
    }

    /// A server may be silent for as long as a slow machine takes to come back to a test.
    private static var patient: SourceOptions {
        var options = SourceOptions()
        options.http.idleTimeout = .seconds(3600)
        return options
    }

    @Test func shutdown_breaksOff_whatRuns() async throws {
        try await ScriptedOrigin.run({ _, _ in [.hold] }) { origin in
            let session = try SourceSession(Self.patient)
            let answer = URLSource(origin.url("/x"), session: session).start()
            await origin.log.reaches(1)
            await session.shutdown()
            #expect(try await failure(of: answer).code == .cancelled)
            #expect(try await failure(of: URLSource(origin.url("/x"), session: session).start()).code == .cancelled)
        }
    }

    /// Tells when it goes; a session has it as long as there is one, in its logger.
    private final class Token: Sendable {
        let gone: @Sendable () -> Void

        init(_ gone: @escaping @Sendable () -> Void) { self.gone = gone }

        deinit { gone() }
    }

    private struct Handler: LogHandler {
        let token: Token
        var logLevel = Logger.Level.critical
        var metadata = Logger.Metadata()

        subscript(metadataKey key: String) -> Logger.Metadata.Value? {
            get { metadata[key] }
            set { metadata[key] = newValue }
        }

        func log(event: LogEvent) {}
    }

    @Test func session_lives_asLongAsASourceOfItRuns() async throws {
        let gate = OriginGate()
        try await ScriptedOrigin.run({ _, _ in
            [.head("200 OK", [("Content-Length", "2")]), .wait(gate), .send("ok")]
        }) { origin in
            let (ends, end) = AsyncStream.makeStream(of: Void.self)
            weak var session: SourceSession?
            let answer: Deferred<URLSource.Response, any Error>
            do {
                let token = Token { end.finish() }
                let own = try SourceSession(Self.patient, logger: Logger(label: "test") { _ in Handler(token: token) })
                session = own
                answer = URLSource(origin.url("/x"), session: own).start()
            }
            await origin.log.reaches(1)
            #expect(session != nil)
            gate.open()
            let finished = try await answer.get()
            #expect(finished.text == "ok")
            for await _ in ends {}
            #expect(session == nil)
        }
    }
}
