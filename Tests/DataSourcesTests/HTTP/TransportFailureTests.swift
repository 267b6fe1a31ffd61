@testable import DataSources
import DeferredKit
import JobModel
import NIOCore
import NIOEmbedded
import NIOSSL
import TestSupport
import Testing
import TestOrigin

@Suite struct TransportFailureTests {
    @Test func failure_isTLS_whenServerSpeaksNone() async throws {
        try await Workbench.run(serving: [:]) { origin, bench in
            let error = try await bench.failure(.source("url", "https://127.0.0.1:\(origin.port)/"))
            #expect(error.kind == .tls)
            #expect(!error.isRetryable)
        }
    }

    @Test func failure_isNetwork_whenServerClosesDuringTheHandshake() async throws {
        try await Workbench.run(against: { _, _ in [.close] }) { origin, bench in
            let error = try await bench.failure(.source("url", "https://127.0.0.1:\(origin.port)/"))
            #expect(error.kind == .network && error.isRetryable, "\(error)")
        }
    }

    @Test func message_isPlain_whenTheReasonIsTechnical() throws {
        let url = try #require(RequestURL("https://a.example/"))
        let failures: [(any Error, String)] = [
            (NIOSSLError.handshakeFailed(.syscallError), "(the reason is unknown)"),
            (Inflater.Failure.damaged("incorrect header check"), "(incorrect header check)"),
            (Inflater.Failure.truncated, "(it ends too early)"),
        ]
        for (failure, text) in failures {
            let message = JobError(transport: failure, to: url).message
            #expect(message.contains(text), "\(message)")
        }
        #expect(JobError.reason(ofTLS: NIOSSLError.failedToLoadCertificate) == "it has no valid certificate")
    }

    @Test(arguments: [true, false]) func failure_isTimeout_whenServerIsSlowerThanItMustBe(isSlow: Bool) async throws {
        let gates = (0..<10).map { _ in OriginGate() }
        let steps = gates.flatMap { gate in [.wait(gate), .send(isSlow ? "x" : "xxxx")] as [OriginStep] }
        let length = isSlow ? 10 : 40
        let clock = NIOAsyncTestingEventLoop()
        try await Workbench.run(
            against: { _, _ in [.head("200 OK", [("Content-Length", "\(length)")])] + steps }, timers: clock
        ) {
            $0.http.lowSpeed.bytes = 10
            $0.http.lowSpeed.seconds = 20
        } _: { origin, bench in
            let deferred = try bench.start(["type": "url", "url": .string(origin.url("/x"))])
            let (sizes, report) = AsyncStream.makeStream(of: Int64.self)
            deferred.onProgress { report.yield($0.completed) }
            deferred.upon { _ in report.finish() }
            var arrivals = sizes.makeAsyncIterator()
            await origin.log.reaches(1)
            for gate in gates {
                await clock.advanceTime(by: .seconds(5))
                gate.open()
                guard await arrivals.next() != nil else { break }
            }
            if isSlow {
                let error = try await bench.failure(of: deferred)
                #expect(error.kind == .timeout)
                #expect(error.message.contains("10 bytes"))
            } else {
                #expect(try await deferred.get()["size"] == 40)
            }
        }
    }

    @Test func cancel_removesABody_thatStandsInAFile() async throws {
        let script: ScriptedOrigin.Script = { _, _ in
            [.head("200 OK", [("Content-Length", "10000000")]), .stream(5_000_000), .hold]
        }
        // However long this takes on a busy machine, it is not the server's silence that ends the transfer.
        try await Workbench.run(against: script, { $0.http.idleTimeout = 86_400 }) { origin, bench in
            let deferred = try bench.start(.source("url", origin.url("/x")))
            await deferred.progress(reaches: 5_000_000)
            #expect(bench.names(below: bench.directory).contains("body"))
            deferred.cancel()
            await bench.library.shutdown()
            #expect(bench.names(below: bench.directory).allSatisfy { $0 == "downloads" || $0 == "root" })
            await origin.clientLeaves()
            await #expect(throws: CancellationError.self) { try await deferred.get() }
        }
    }
}
