import DeferredKit
import JobModel
import NIOCore
import NIOEmbedded
import Synchronization
import TestSupport
import Testing
import TestOrigin

@testable import DataSources

@Suite struct NameResolutionTests {
    private func resolver(_ answers: [String: [String]]) -> Workbench.Names {
        Workbench.Names { name in
            guard let addresses = answers[name] else { return .failure(NameResolver.Failure(reason: "no such name")) }
            return .success(addresses.compactMap { IPAddress($0) })
        }
    }

    private func url(_ url: String) -> JSON { ["type": "url", "url": .string(url)] }

    /// Neither the kind nor the server behind the policy tells whether anything listens there.
    @Test(arguments: ["url", "json", "download"]) func deniedAddress_isNotConnectedTo(type: String) async throws {
        let silent = try SilentPort()
        try await Workbench.run(
            against: { _, _ in [.head("200 OK", [("Content-Length", "0")])] },
            names: resolver(["in.example": ["127.0.0.1"], "both.example": ["127.0.0.1", "169.254.169.254"]])
        ) {
            $0.policy.denyAddresses = ["127.0.0.0/8"]
        } _: { origin, bench in
            var errors: [JobError] = []
            for port in [origin.port, silent.port] {
                for name in ["in.example", "both.example"] {
                    let path: [String: JSON] = type == "download" ? ["path": "x"] : [:]
                    errors.append(try await bench.failure(.source(type, "http://\(name):\(port)/x", path)))
                }
            }
            #expect(errors.allSatisfy { $0.kind == .policy && !$0.isRetryable })
            #expect(errors[0] == errors[2])
            #expect(origin.connectionCount == 0)
        }
    }

    /// A mirror is a server like the first one, and so is where a file is sent.
    @Test func deniedAddress_isNotConnectedTo_byMirrorsAndUploads() async throws {
        let script: ScriptedOrigin.Script = { request, _ in
            let empty = [("Content-Length", "0")]
            return request.path == "/moved"
                ? [.head("307 Moved", [("Location", "http://in.example:1/")] + empty)] : [.head("404 Not Found", empty)]
        }
        try await Workbench.run(against: script, names: resolver(["in.example": ["127.0.0.2"]])) {
            $0.policy.denyAddresses = ["127.0.0.2/32"]
        } _: { origin, bench in
            let mirrored = try await bench.failure(
                .download(origin.url("/x"), to: "x", ["mirrors": ["http://in.example:1/x", "http://127.0.0.2:1/x"]]))
            #expect(mirrored.failures?.map(\.kind) == [.http, .policy, .policy], "\(mirrored)")
            try bench.write([1], to: bench.downloads + "/sent")
            for url in ["http://in.example:1/", "http://127.0.0.2:1/", origin.url("/moved")] {
                let error = try await bench.failure(["type": "upload", "url": .string(url), "path": "sent"])
                #expect(error.kind == .policy, "\(url) \(error)")
            }
        }
    }

    @Test func allowedAddress_isUsed_besideDeniedOne() async throws {
        try await Workbench.run(
            serving: ["/x": OriginResource(text: "x")], names: resolver(["a.example": ["169.254.1.1", "127.0.0.1"]])
        ) { origin, bench in
            let result = try await bench.result(url("http://a.example:\(origin.port)/x"))
            #expect(result["body"] == "x")
            #expect(origin.log.last("/x")?.headers["host"] == "a.example:\(origin.port)")
        }
    }

    @Test func nextAddress_isTried_whenOneRefuses() async throws {
        try await Workbench.run(
            serving: ["/x": OriginResource(text: "x")],
            names: resolver(["a.example": ["::1", "127.0.0.9", "127.0.0.1"]])
        ) { origin, bench in
            let result = try await bench.result(url("http://a.example:\(origin.port)/x"))
            #expect(result["body"] == "x")
        }
    }

    @Test func failure_isDNS_whenResolverTakesTooLong() async throws {
        let names = BlockedNames()
        let clock = NIOAsyncTestingEventLoop()
        try await Workbench.run(timers: clock, names: names.names) { bench in
            let deferred = try bench.start(url("http://a.dead/"))
            await names.lookUp()
            await clock.advanceTime(by: .seconds(10))
            let error = try await bench.failure(of: deferred)
            #expect(error.kind == .dns)
            #expect(error.isRetryable)
        }
        names.answer()
    }

    @Test func deadNames_ofOneUser_holdUpNobodyElse() async throws {
        let names = BlockedNames()
        try await Workbench.run(
            serving: ["/x": OriginResource(text: "x")], timers: NIOAsyncTestingEventLoop(), names: names.names
        ) { origin, bench in
            let dead = try (0..<50).map { number in
                try bench.start(url("http://\(number).dead/"), job: JobID(number), owner: 1)
            }
            await names.lookUp(NameResolver.perUser)
            let result = try await bench.result(url("http://a.example:\(origin.port)/x"), job: 100, owner: 2)
            #expect(result["body"] == "x")
            #expect(names.lookedUp.count == NameResolver.perUser)
            // A name without a waiting transfer is not looked up.
            for deferred in dead { deferred.cancel() }
            for deferred in dead { await #expect(throws: CancellationError.self) { try await deferred.get() } }
            names.answer()
            #expect(try await bench.result(url("http://a.example:\(origin.port)/x"), owner: 1)["body"] == "x")
            #expect(names.lookedUp.count == NameResolver.perUser)
        }
    }

    @Test func lookups_areBounded_overAllUsers() async throws {
        let names = BlockedNames()
        try await Workbench.run(timers: NIOAsyncTestingEventLoop(), names: names.names) { bench in
            let dead = try (0..<200).map { number in
                try bench.start(
                    url("http://\(number).dead/"), job: JobID(number), owner: UInt32(number % 20))
            }
            await names.lookUp(NameResolver.total)
            #expect(names.lookedUp.count == NameResolver.total)
            names.answer()
            for deferred in dead { #expect(try await bench.failure(of: deferred).kind == .dns) }
            #expect(names.most == NameResolver.total)
            #expect(Set(names.lookedUp).count == 200)
        }
    }
}
