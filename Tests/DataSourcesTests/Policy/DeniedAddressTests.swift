import JobModel
import Synchronization
import TestOrigin
import TestSupport
import Testing

@testable import DataSources

/// Denied addresses that are reached on a way of their own: by a later connection, or through a proxy.
@Suite struct DeniedAddressTests {
    /// A name that is the probe's for once, and another address from then on.
    @Test func segments_areNotFetched_fromTheAddressThatTheirNameMovedTo() async throws {
        let gate = OriginGate()
        let lookups = Mutex(0)
        let names = Workbench.Names { _ in
            let count = lookups.withLock { count in
                count += 1
                return count
            }
            guard count > 1 else { return .success([IPAddress(bytes: [127, 0, 0, 1])]) }
            gate.open()
            return .success([IPAddress(bytes: [127, 0, 0, 2])])
        }
        let body = Workbench.bytes(1 << 20)
        // The probe's connection ends, so that nothing is left but what the name leads to now.
        let script: ScriptedOrigin.Script = { _, _ in
            [
                .head("200 OK", [("Content-Length", "\(body.count)"), ("ETag", "\"1\""), ("Accept-Ranges", "bytes")]),
                .send(Array(body[..<200_000])), .wait(gate), .close,
            ]
        }
        try await ScriptedOrigin.run(script) { origin in
            let denied = try WatchedPort("127.0.0.2", port: origin.port)
            try await Workbench.run(names: names) {
                $0.policy.denyAddresses = ["127.0.0.2/32"]
            } _: { bench in
                let error = try await bench.failure(
                    .download(origin.url("/x", host: "moves.example"), to: "x", ["segments": 4]))
                #expect(error.kind == .policy, "\(error)")
                #expect(origin.connectionCount == 1)
                #expect(!denied.wasConnectedTo)
                #expect(!bench.names(below: bench.downloads).contains("x"))
            }
        }
    }

    private static let insideNames = Workbench.Names { name in
        name == "inside.example"
            ? .success([IPAddress(bytes: [8, 8, 8, 8]), IPAddress(bytes: [169, 254, 169, 254])])
            : .failure(NameResolver.Failure(reason: "unknown"))
    }

    /// For a denied address, no connection to a proxy is made.
    @Test(arguments: ["http", "socks5"]) func proxy_isNotAsked_forWhatIsDenied(scheme: String) async throws {
        let proxy = try WatchedPort()
        try await Workbench.run(names: Self.insideNames) {
            $0.http.proxy = "\(scheme)://127.0.0.1:\(proxy.port)"
        } _: { bench in
            try bench.write([1], to: bench.downloads + "/sent")
            for url in ["http://inside.example/", "http://169.254.169.254/", "http://2852039166/"] {
                let sources: [JSON] = [
                    ["type": "url", "url": .string(url)], ["type": "json", "url": .string(url)],
                    ["type": "download", "url": .string(url), "path": "x", "segments": 4],
                    ["type": "download", "url": .string(url), "path": "x", "mirrors": [.string(url)]],
                    ["type": "upload", "url": .string(url), "path": "sent"],
                ]
                for source in sources {
                    let error = try await bench.failure(source)
                    #expect(error.kind == .policy, "\(source) \(error)")
                    #expect(error.failures?.allSatisfy { $0.kind == .policy } != false, "\(error)")
                }
            }
            #expect(!proxy.wasConnectedTo)
        }
    }

    @Test func redirect_isNotFollowed_throughAProxy_toWhatIsDenied() async throws {
        let targets = ["http://inside.example/", "http://169.254.169.254/", "http://[::ffff:169.254.169.254]/"]
        let script: ScriptedOrigin.Script = { request, _ in
            let target = targets[request.target.last.flatMap { Int(String($0)) } ?? 0]
            return [.head("307 Moved", [("Location", target), ("Content-Length", "0")])]
        }
        try await ScriptedOrigin.run(script) { proxy in
            try await Workbench.run(names: Self.insideNames) {
                $0.http.proxy = "http://127.0.0.1:\(proxy.port)"
            } _: { bench in
                try bench.write([1], to: bench.downloads + "/sent")
                for index in targets.indices {
                    let url = "http://out.example/\(index)"
                    for source in [
                        .source("url", url), .download(url, to: "x"), .source("upload", url, ["path": "sent"]),
                    ] as [JSON] {
                        let error = try await bench.failure(source)
                        #expect(error.kind == .policy, "\(source) \(error)")
                    }
                }
                let asked = proxy.log.entries.map(\.target)
                #expect(!asked.isEmpty && asked.allSatisfy { $0.hasPrefix("http://out.example/") })
            }
        }
    }
}
