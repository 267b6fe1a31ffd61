import Foundation
import Glibc
import JobModel
import TestOrigin
import TestSupport
import Testing

/// Header fields that the configuration adds for a host (`http.credentials`), of which jobs know nothing.
@Suite struct CredentialTests {
    private static let secret = "Bearer 5f1c-secret-c0de"

    /// Runs a daemon with a credential for `origin`; `entry` are further members of it.
    private func run(
        for origin: GuidedOrigin, header: String = "X-Token", _ entry: String = "insecure: true",
        _ body: (Daemon, _ file: String) async throws -> Void
    ) async throws {
        try await Household.with { household in
            chmod(household.directory.path, 0o711)
            let credentials = household.directory.path + "/credentials"
            mkdir(credentials, 0o700)
            try household.directory.write(Self.secret + "\n", to: "credentials/token")
            let daemon = try await household.start(
                configuration: Self.configuration(origin, header, entry),
                environment: ["CREDENTIALS_DIRECTORY": credentials])
            try await body(daemon, credentials + "/token")
            try await daemon.stop()
        }
    }

    private static func configuration(_ origin: GuidedOrigin, _ header: String, _ entry: String) -> String {
        "socket:\n  mode: \"0666\"\nhttp:\n  credentials:\n    127.0.0.1:\(origin.port): "
            + "{header: \(header), credential: token, \(entry)}\nlog:\n  level: trace\n"
    }

    @Test func credential_reachesItsHost_andNobodyElse() async throws {
        try await GuidedOrigin.run({ request, _ in
            request.path == "/missing" ? .status("404 Not Found") : .whole(Sample.content, etag: "\"1\"")
        }) { origin in
            try await run(for: origin) { daemon, _ in
                let wire = try daemon.connect()
                let watch = try await wire.call("job.watch", ["all": true, "interval": 0.01])
                #expect(watch["watch"] != nil)
                var seen = try await wire.call("job.explain", .fetch(origin.url("/a"))).description
                seen += try await wire.succeed(.fetch(origin.url("/a"))).description
                seen += try await wire.succeed(.download(origin.url("/b"), to: "b")).description
                seen += try await wire.fail(.fetch(origin.url("/missing"), ["retry": ["max": 0]])).description
                seen += try await wire.call("job.list").description
                for path in ["/a", "/b", "/missing"] {
                    #expect(try await origin.arrival(of: path).headers["x-token"] == Self.secret, "\(path)")
                }
                wire.finishWriting()
                seen += try await wire.rest().map(\.text).joined()
                seen += daemon.process.errorText
                let status = try Data(contentsOf: URL(filePath: "/proc/\(daemon.pid)/cmdline"))
                seen += String(decoding: status, as: UTF8.self)
                #expect(!seen.contains("secret"))
                let stored = FileManager.default.enumerator(atPath: daemon.state)
                while let name = stored?.nextObject() as? String {
                    let bytes = try? Data(contentsOf: URL(filePath: daemon.state + "/" + name))
                    #expect(bytes?.range(of: Data(Self.secret.utf8)) == nil, "\(name)")
                }
            }
        }
    }

    @Test func credential_isNotSent_onceAnotherOriginHadItsSay() async throws {
        try await GuidedOrigin.run({ _, _ in .text("other") }) { other in
            let elsewhere = other.url("/elsewhere").string ?? ""
            let port = other.port
            try await GuidedOrigin.run({ request, _ in
                switch request.path {
                case "/within": .status("307 Temporary Redirect", [("Location", "/out")])
                case "/out": .status("307 Temporary Redirect", [("Location", elsewhere)])
                default: .text("here")
                }
            }) { origin in
                try await run(for: origin) { daemon, _ in
                    let wire = try daemon.connect()
                    _ = try await wire.succeed(.fetch(origin.url("/within")))
                    #expect(try await origin.arrival(of: "/within").headers["x-token"] == Self.secret)
                    #expect(try await origin.arrival(of: "/out").headers["x-token"] == Self.secret, "the same origin")
                    #expect(try await other.arrival(of: "/elsewhere").headers["x-token"] == nil)
                    #expect(port != origin.port)
                }
            }
        }
    }

    @Test func credential_isNotUsed_becauseAnotherServerSaysSo() async throws {
        try await GuidedOrigin.run({ _, _ in .text("here") }) { origin in
            let target = origin.url("/change").string ?? ""
            try await GuidedOrigin.run({ _, _ in .status("302 Found", [("Location", target)]) }) { other in
                try await run(for: origin) { daemon, _ in
                    _ = try await daemon.connect().succeed(.fetch(other.url("/")))
                    #expect(try await origin.arrival(of: "/change").headers["x-token"] == nil)
                }
            }
        }
    }

    @Test func credential_isForHTTPSOnly_unlessItSaysOtherwise() async throws {
        try await GuidedOrigin.run({ _, _ in .text("here") }) { origin in
            try await run(for: origin, "insecure: false") { daemon, _ in
                _ = try await daemon.connect().succeed(.fetch(origin.url("/plain")))
                #expect(try await origin.arrival(of: "/plain").headers["x-token"] == nil)
            }
        }
    }

    @Test(.enabled(if: User.canBeOthers, "other users' jobs need root, setpriv and socat"))
    func credential_isForItsUsers() async throws {
        try await GuidedOrigin.run({ _, _ in .text("here") }) { origin in
            try await run(for: origin, header: "Authorization", "insecure: true, users: [64001, daemon]") { daemon, _ in
                _ = try await User.ann.connect(to: daemon).succeed(.fetch(origin.url("/ann")))
                #expect(try await origin.arrival(of: "/ann").headers["authorization"] == Self.secret)
                _ = try await User.bob.connect(to: daemon).succeed(.fetch(origin.url("/bob")))
                #expect(try await origin.arrival(of: "/bob").headers["authorization"] == nil)
            }
        }
    }

    @Test func ownField_comesBeforeTheCredential() async throws {
        try await GuidedOrigin.run({ _, _ in .text("here") }) { origin in
            try await run(for: origin, header: "Authorization") { daemon, _ in
                let own: JSON = [
                    "source": ["type": "url", "url": origin.url("/own"), "headers": ["authorization": "mine"]]
                ]
                _ = try await daemon.connect().succeed(own)
                #expect(try await origin.arrival(of: "/own").headers["authorization"] == "mine")
            }
        }
    }

    @Test func credential_isReadAgain_byAReload() async throws {
        try await GuidedOrigin.run({ _, _ in .text("here") }) { origin in
            try await run(for: origin) { daemon, file in
                let configuration = Self.configuration(origin, "X-Token", "insecure: true")
                try Data("new".utf8).write(to: URL(filePath: file))
                try await daemon.reload(configuration)
                let wire = try daemon.connect()
                _ = try await wire.succeed(.fetch(origin.url("/new")))
                #expect(try await origin.arrival(of: "/new").headers["x-token"] == "new")
                try Data("two\nlines".utf8).write(to: URL(filePath: file))
                try await daemon.reload(configuration, isRefused: true)
                _ = try await wire.succeed(.fetch(origin.url("/kept")))
                #expect(try await origin.arrival(of: "/kept").headers["x-token"] == "new")
                #expect(!daemon.process.errorText.contains("two"))
            }
        }
    }

    @Test func start_isRefused_withoutTheCredential() async throws {
        try await TemporaryDirectory.with { directory in
            let yaml = "http:\n  credentials:\n    example.org: {credential: token}\n"
            let command = try Daemon.command(in: directory, configuration: yaml)
            for environment in [[:], ["CREDENTIALS_DIRECTORY": directory.path]] {
                let (end, _, errors) = try await ChildProcess.run(command, environment: environment)
                #expect(end == .code(78))
                #expect(errors.contains("deferd.yaml:3: http.credentials.example.org"), "\(errors)")
                #expect(errors.contains("LoadCredential=token"))
            }
            // Started by hand, the check has no credentials; the service has them.
            let (end, _, _) = try await ChildProcess.run(command + ["--check"])
            #expect(end == .code(0))
        }
    }
}
