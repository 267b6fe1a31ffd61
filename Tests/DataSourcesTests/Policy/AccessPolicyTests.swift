@testable import DataSources
import JobModel
import Testing
import TestOrigin

@Suite struct AccessPolicyTests {
    @Test(arguments: [
        "http://169.254.169.254/latest/meta-data", "http://2852039166/", "http://0xA9FEA9FE/",
        "http://0251.0376.0251.0376/", "http://169.254.43518/", "http://[::ffff:169.254.169.254]/",
        "http://[::ffff:a9fe:a9fe]/", "http://[64:ff9b::a9fe:a9fe]/", "http://[fe80::1]/", "http://[fe80::1%25eth0]/",
        "http://[fd00:ec2::254]/", "http://[fd00:ec2::23]/", "http://[fd20:ce::254]/", "http://168.63.129.16/",
        "http://100.100.100.200/", "http://[64:ff9b:1::a9fe:a9fe]/", "http://[64:ff9b:1:1a9:fe:a9fe::]/",
        "http://[64:ff9b:1:0:a9:fea9:fe00:0]/",
        "http://[::ffff:0:169.254.169.254]/", "http://[2002:a9fe:a9fe::]/", "http://[::169.254.169.254]/",
        "http://[2001:0:a9fe:a9fe::1]/", "http://[2001:0:1::5601:5601]/",
        "http://169.254.169.254./", "http://\u{FF11}\u{FF16}\u{FF19}.254.169.254/", "ftp://example.org/",
        "file:///etc/passwd", "file://localhost/etc/passwd", "unix://x/", "http+unix://x/",
    ])
    func url_isForbidden_byDefault(url: String) async throws {
        try await Workbench.run { bench in
            let error = #expect(throws: JobError.self) { try bench.library.rules.check(url: url) }
            #expect(error?.kind == (url.hasPrefix("file:///") ? .invalid : .policy))
            #expect(error?.isRetryable == false)
        }
    }

    @Test(arguments: [
        "no url", "http://", "/path", "http://a b/", "http://127.0.0.%31/", "http://%31%32%37.0.0.1/",
        "http://127.0.0.1%2f/", "http://127.0.0.1\\@127.0.0.2/", "http://127..1/", "http://127.0.0.1../",
        "http://127.0.0.1%00.example/",
    ])
    func text_isInvalid_whenNoURL(text: String) async throws {
        try await Workbench.run { bench in
            let error = #expect(throws: JobError.self) { try bench.library.rules.check(url: text) }
            #expect(error?.kind == .invalid)
        }
    }

    @Test func denied_addToWhatAlwaysIs_andAllowedAreExceptions() async throws {
        try await Workbench.run {
            $0.policy.denyAddresses = ["10.0.0.0/8"]
            $0.policy.allowAddresses = ["10.1.0.0/16", "169.254.7.7", "fe80::5"]
        } _: { bench in
            for url in ["http://10.1.2.3/", "http://169.254.7.7/", "http://[::ffff:169.254.7.7]/", "http://[fe80::5]/"]
            {
                try bench.library.rules.check(url: url)
            }
            for url in ["http://10.2.2.3/", "http://169.254.169.254/", "http://168.63.129.16/", "http://[fe80::6]/"] {
                let error = #expect(throws: JobError.self) { try bench.library.rules.check(url: url) }
                #expect(error?.kind == .policy)
            }
        }
    }

    @Test(arguments: [
        "127.0.0.1.", "127.1", "127.0.1", "0x7f.1", "0177.0x0.0.01", "0", "0x0", "[::127.0.0.1]", "[64:ff9b::7f00:1]",
        "[2002:7f00:1::]", "[::]", "[0:0:0:0:0:0:0:1]", "[::1%25lo]", "[::1%lo]", "[::ffff:127.0.0.1%25lo]",
        "127\u{3002}0\u{FF0E}0\u{FF61}1", "\u{2460}\u{2461}\u{2466}.0.0.1", "127.0.0.2@127.0.0.1",
    ])
    func deniedAddress_isForbidden_inEverySpelling(host: String) async throws {
        try await Workbench.run {
            $0.policy.denyAddresses = ["127.0.0.1/32", "::1"]
        } _: { bench in
            let error = #expect(throws: JobError.self) { try bench.library.rules.check(url: "http://\(host):80/") }
            #expect(error?.kind == .policy)
        }
    }

    @Test(arguments: [
        "192.168/16", "10/8", "10.1/16", "010.0.0.0/8", "10.0.0.00/8", "0xA.0.0.0/8", "10.1", "167772161", "010.0.0.1",
    ])
    func block_isRefused_unlessItHasFourDecimalParts(text: String) {
        for path in [\PolicySettings.denyAddresses, \.allowAddresses] {
            var settings = PolicySettings()
            settings[keyPath: path] = [text]
            let error = #expect(throws: JobError.self) { try AccessPolicy(settings) }
            #expect(error?.message.contains("\"\(text)\" in policy.") == true)
        }
    }

    @Test func error_showsTheURL_asItWasWritten_butNoPassword() async throws {
        try await Workbench.run { bench in
            let error = #expect(throws: JobError.self) { try bench.library.rules.check(url: "ftp://example.org/x") }
            #expect(error?.message.contains("\"ftp://example.org/x\"") == true, "\(error?.message ?? "")")
            let other = #expect(throws: JobError.self) { try bench.library.rules.check(url: "ftp://u:secret@h/") }
            #expect(other?.message.contains("secret") == false)
        }
    }

    @Test(arguments: [
        ("http://good.example/", true), ("http://a.wild.example/", true), ("http://wild.example/", false),
        ("http://other.example/", false), ("http://bad.wild.example/", false), ("http://BAD.wild.example./", false),
        ("http://\u{FF42}ad.wild.example/", false), ("http://good.example:80@other.example/", false),
        ("http://10.1.2.3/", true),
        ("http://10.1.2.4/", false),
    ])
    func hosts_areAllowedAndDenied_byTheirLists(url: String, isAllowed: Bool) async throws {
        try await Workbench.run {
            $0.policy.allowHosts = ["Good.example", "*.wild.example", "10.1.2.3"]
            $0.policy.denyHosts = ["bad.wild.example"]
        } _: { bench in
            if isAllowed {
                try bench.library.rules.check(url: url)
            } else {
                #expect(throws: JobError.self) { try bench.library.rules.check(url: url) }
            }
        }
    }

    @Test(
        arguments: [
            { $0.policy.denyAddresses = ["10.0.0.0/33"] }, { $0.policy.allowAddresses = ["10.0.0.0/"] },
            { $0.policy.denyHosts = ["a b"] },
            { $0.policy.schemes = ["gopher"] }, { $0.http.proxy = "nonsense" },
            { $0.http.noProxy = ["a b"] }, { $0.downloads.directory = "relative" },
            { $0.downloads.roots = ["/a/../b"] },
        ] as [@Sendable (inout SourceSettings) -> Void])
    func library_refusesSettings_thatCannotBeMeant(change: @Sendable (inout SourceSettings) -> Void) async throws {
        let error = await #expect(throws: JobError.self) {
            try await Workbench.run(change) { _ in }
        }
        #expect(error?.kind == .invalid)
    }

    @Test func redirect_isRefused_whenItLeadsToForbiddenHost() async throws {
        try await TestOrigin.run { origin in
            origin["/out"] = .redirect(302, to: "http://169.254.169.254/latest")
            origin["/name"] = .redirect(302, to: origin.url("/secret", host: "localhost"))
            origin["/secret"] = OriginResource(text: "secret")
            try await Workbench.run {
                $0.policy.denyHosts = ["localhost"]
            } _: { bench in
                for path in ["/out", "/name"] {
                    let error = try await bench.failure(["type": "url", "url": .string(origin.url(path))])
                    #expect(error.kind == .policy)
                }
                #expect(origin.log.count("/secret") == 0)
            }
        }
    }
}
