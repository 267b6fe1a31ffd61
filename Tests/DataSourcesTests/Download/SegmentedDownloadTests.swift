@testable import DataSources
import DeferredKit
import Foundation
import JobModel
import NIOCore
import NIOEmbedded
import Synchronization
import TestOrigin
import Testing

/// Downloads over several connections at once.
@Suite struct SegmentedDownloadTests {
    static let body = Workbench.bytes(1 << 20)
    static let tag = "\"1\""

    func download(_ origin: ScriptedOrigin, _ segments: Int = 4, _ more: [String: JSON] = [:]) -> JSON {
        .download(origin.url("/x"), to: "x", more.merging(["segments": JSON(segments)]) { own, _ in own })
    }

    static func head(_ request: OriginLog.Entry, etag: String? = tag, body: [UInt8] = body) -> OriginStep {
        guard let (start, last) = request.range else {
            return .head("200 OK", [("Content-Length", "\(body.count)")] + (etag.map { [("ETag", $0)] } ?? []))
        }
        let end = min(last, body.count - 1)
        return .head(
            "206 Partial Content",
            [
                ("Content-Length", "\(end - start + 1)"), ("Content-Range", "bytes \(start)-\(end)/\(body.count)"),
            ] + (etag.map { [("ETag", $0)] } ?? []))
    }

    /// What a request is to be answered with, and where that lies in the file.
    static func bytes(_ request: OriginLog.Entry) -> ArraySlice<UInt8> {
        guard let (start, last) = request.range else { return body[...] }
        return body[start...min(last, body.count - 1)]
    }

    // MARK: All is well

    @Test(arguments: [2, 4, 16]) func file_comesOverSoManyConnections_atOnce(segments: Int) async throws {
        let gate = OriginGate()
        try await Workbench.run(against: { request, _ in
            [Self.head(request), .wait(gate), .send(Array(Self.bytes(request)))]
        }) { origin, bench in
            let deferred = try bench.start(download(origin, segments))
            // None of them brings a byte before all have asked.
            await origin.log.reaches(segments)
            gate.open()
            let result = try await deferred.get()
            #expect(bench.bytes(of: bench.downloads + "/x") == Self.body)
            #expect(bench.names(below: bench.downloads) == ["x"])
            let digest = FileDigest.sha256(of: Self.body)
            #expect(
                result == [
                    "path": .string(bench.downloads + "/x"), "size": 1_048_576, "status": 200,
                    "etag": .string(Self.tag), "lastModified": .null, "sha256": .string(digest), "resumedFrom": 0,
                    "attempts": 1, "url": .string(origin.url("/x")),
                ])
            let first = origin.log.entries.prefix(segments)
            #expect(first.first?.range == nil)
            for entry in first.dropFirst() {
                #expect(entry.headers["if-range"] == Self.tag)
                #expect((entry.range.map { $0.last - $0.start + 1 } ?? 0) >= 65_536)
            }
        }
    }

    @Test func slowSegment_isSplit_asOthersEnd() async throws {
        let gate = OriginGate()
        try await Workbench.run(against: { request, count in
            // The first, which has the first quarter, brings nothing until the rest of the file is there.
            count == 0
                ? [Self.head(request), .wait(gate), .send(Self.body)]
                : [Self.head(request), .send(Array(Self.bytes(request)))]
        }) { origin, bench in
            let deferred = try bench.start(download(origin))
            deferred.onProgress { if $0.completed == (1 << 20) - (64 << 10) { gate.open() } }
            _ = try await deferred.get()
            #expect(bench.bytes(of: bench.downloads + "/x") == Self.body)
            // 256 KiB in halves, down to 64 KiB.
            #expect(origin.log.entries.contains { $0.range.map { $0.start == 65_536 } ?? false })
            #expect(!origin.log.entries.contains { $0.range.map { $0.start < 65_536 } ?? false })
        }
    }

    @Test func progress_isTheSum_andNeverGoesBack() async throws {
        try await Workbench.run(
            against: { request, _ in [Self.head(request), .send(Array(Self.bytes(request)))] }
        ) { origin, bench in
            let deferred = try bench.start(download(origin))
            let seen = Mutex<[ProgressUpdate]>([])
            deferred.onProgress { update in seen.withLock { $0.append(update) } }
            _ = try await deferred.get()
            let updates = seen.withLock(\.self)
            #expect(updates.allSatisfy { $0.total == 1 << 20 })
            #expect(updates.last?.completed == 1 << 20)
            #expect(updates.map(\.completed) == updates.map(\.completed).sorted())
        }
    }

    // MARK: One connection is enough

    @Test func file_comesOverOneConnection_whereItsVersionsCannotBeToldApart() async throws {
        let length = ("Content-Length", "\(Self.body.count)")
        let heads: [[(name: String, value: String)]] = [
            [length], [length, ("ETag", "W/\"1\"")], [length, ("Last-Modified", "Fri, 20 Nov 2020 12:00:00 GMT")],
            [length, ("ETag", "\"1\""), ("Accept-Ranges", "none")],
        ]
        for fields in heads {
            try await Workbench.run(against: { _, _ in [.head("200 OK", fields), .send(Self.body)] }) { origin, bench in
                _ = try await bench.result(download(origin))
                #expect(bench.bytes(of: bench.downloads + "/x") == Self.body)
                #expect(origin.log.count() == 1, "\(fields)")
            }
        }
    }

    enum Wrong: CaseIterable {
        case whole, otherTag, noTag, otherStart, otherTotal, noRange, longer, status416
    }

    /// The answers to a request for a range that are not just that range of this version.
    private static func answer(_ wrong: Wrong, to request: OriginLog.Entry) -> [OriginStep] {
        guard let (start, last) = request.range else { return [head(request), .send(body)] }
        func partial(_ range: String?, _ etag: String? = tag) -> [OriginStep] {
            let fields =
                [("Content-Length", "\(last - start + 1)")] + (etag.map { [("ETag", $0)] } ?? [])
                + (range.map { [("Content-Range", "bytes \($0)")] } ?? [])
            return [.head("206 Partial Content", fields), .send([UInt8](repeating: 0, count: last - start + 1))]
        }
        return switch wrong {
        case .whole: [.head("200 OK", [("Content-Length", "\(body.count)"), ("ETag", tag)]), .send(body)]
        case .otherTag: partial("\(start)-\(last)/\(body.count)", "\"2\"")
        case .noTag: partial("\(start)-\(last)/\(body.count)", nil)
        case .otherStart: partial("\(start - 1)-\(last - 1)/\(body.count)")
        case .otherTotal: partial("\(start)-\(last)/\(body.count + 1)")
        case .noRange: partial(nil)
        case .longer: partial("\(start)-\(min(body.count - 1, last + 1))/\(body.count)")
        case .status416: [.head("416 No", [("Content-Length", "0")])]
        }
    }

    @Test(arguments: Wrong.allCases) func file_comesFromItsStart_whereARangeIsNotWhatWasAskedFor(
        wrong: Wrong
    ) async throws {
        try await Workbench.run(against: { request, _ in
            // The last segment ends where the file does, so a longer one of it is right.
            if wrong == .longer, request.range?.last == Self.body.count - 1 {
                return [Self.head(request), .send(Array(Self.bytes(request)))]
            }
            return Self.answer(wrong, to: request)
        }) { origin, bench in
            let result = try await bench.result(download(origin))
            #expect(bench.bytes(of: bench.downloads + "/x") == Self.body)
            #expect(result["resumedFrom"] == 0)
            // An answer with the whole file is used. A request that was given up can still be read after the last
            // one.
            let whole = origin.log.entries.filter { $0.range == nil }
            #expect(whole.count == (wrong == .whole ? 1 : 2) && whole.allSatisfy { $0.headers["if-range"] == nil })
        }
    }

    @Test func fileThatChanges_isFetchedAnew_andNeverJoined() async throws {
        let other = Workbench.bytes(1 << 20, seed: 9)
        try await Workbench.run(against: { request, count in
            // The first three requests see the old version, whichever they are.
            if count < 3 { return [Self.head(request), .send(Array(Self.bytes(request)))] }
            // As an If-Range that does not hold is answered.
            return [.head("200 OK", [("Content-Length", "\(other.count)"), ("ETag", "\"2\"")]), .send(other)]
        }) { origin, bench in
            let result = try await bench.result(download(origin))
            #expect(bench.bytes(of: bench.downloads + "/x") == other)
            #expect(result["etag"] == "\"2\"")
        }
    }

    // MARK: Connections that fail

    @Test(arguments: [false, true]) func brokenConnections_areTakenUp_inTheSameAttempt(resetting: Bool) async throws {
        try await Workbench.run(against: { request, _ in
            // At most 50,000 bytes come over each.
            let bytes = Self.bytes(request)
            let steps: [OriginStep] = [Self.head(request), .send(Array(bytes.prefix(50_000)))]
            return bytes.count > 50_000 ? steps + [resetting ? .reset : .close] : steps
        }) { origin, bench in
            let result = try await bench.result(download(origin))
            #expect(bench.bytes(of: bench.downloads + "/x") == Self.body)
            #expect(result["attempts"] == 1)
        }
    }

    @Test(arguments: [0, 1]) func segment_isTakenUpFiveTimes_whereHardlyAnythingComes(count: Int) async throws {
        try await Workbench.run(against: { request, _ in
            guard let (start, _) = request.range else {
                return [Self.head(request), .send(Array(Self.body.prefix(300_000))), .close]
            }
            guard count > 0 else { return [Self.head(request), .close] }
            let range = ("Content-Range", "bytes \(start)-\(start)/\(Self.body.count)")
            return [
                .head("206 Partial Content", [("Content-Length", "1"), range, ("ETag", Self.tag)]),
                .send([Self.body[start]]),
            ]
        }) { origin, bench in
            let error = try await bench.failure(download(origin, 2))
            #expect(error.kind == .network && error.isRetryable)
            // The second connection asked 6 times. The first brought its bytes, broke off and then asked 6 times.
            #expect(origin.log.count() == 1 + 6 + 6)
        }
    }

    @Test(arguments: ["400", "403", "404", "406", "429", "500", "501", "503"])
    func file_isFetchedWhole_whereRangesAreRefused(status: String) async throws {
        try await Workbench.run(against: { request, _ in
            request.range == nil ? [Self.head(request), .send(Self.body)] : [.head(status, [("Content-Length", "0")])]
        }) { origin, bench in
            let result = try await bench.result(download(origin))
            #expect(result["status"] == 200)
            #expect(bench.bytes(of: bench.downloads + "/x") == Self.body)
        }
    }

    @Test func firstConnection_goesOn_whereTheOthersAreRefused() async throws {
        let gate = OriginGate()
        try await Workbench.run(against: { request, count in
            switch count {
            case 0: [Self.head(request), .wait(gate), .send(Self.body)]
            default: [.head("429 Slow", [("Content-Length", "0"), ("Retry-After", "30")])]
            }
        }) { origin, bench in
            let deferred = try bench.start(download(origin, 3))
            var refusals = bench.refusals.stream.makeAsyncIterator()
            for _ in 1...2 { #expect(await refusals.next()?.retryAfter == 30) }
            gate.open()
            #expect(try await deferred.get()["attempts"] == 1)
            #expect(bench.bytes(of: bench.downloads + "/x") == Self.body)
            #expect(origin.log.count() == 3)
        }
    }

    @Test func silentSegment_isTakenUpByAnotherConnection() async throws {
        let clock = NIOAsyncTestingEventLoop()
        try await Workbench.run(
            against: { request, count in
                count == 1 ? [.hold] : [Self.head(request), .send(Array(Self.bytes(request)))]
            }, timers: clock
        ) { origin, bench in
            let deferred = try bench.start(download(origin, 2))
            await origin.log.reaches(2)
            await clock.advanceTime(by: .seconds(60))
            #expect(try await deferred.get()["attempts"] == 1)
            #expect(bench.bytes(of: bench.downloads + "/x") == Self.body)
        }
    }

    @Test func rateOfTheQueue_isNoSlowSpeed() async throws {
        let clock = NIOAsyncTestingEventLoop()
        try await Workbench.run(
            against: { request, _ in [Self.head(request), .send(Array(Self.bytes(request)))] }, timers: clock
        ) {
            ($0.http.lowSpeed.bytes, $0.http.lowSpeed.seconds, $0.http.idleTimeout) = (1_000_000, 1000, 86_400)
        } _: { origin, bench in
            let (pieces, begun) = AsyncStream.makeStream(of: Void.self)
            let rate = RateLimiter(bytesPerSecond: 1)
            var context = bench.context(1)
            (context.queueRate, context.transferred) = (rate, { _ in begun.yield() })
            let deferred = bench.library.start(try bench.parameters(download(origin)), context)
            // From here on, each connection waits for the rate.
            var told = pieces.makeAsyncIterator()
            for _ in 0..<4 { await told.next() }
            try await Workbench.settle()
            await clock.advanceTime(by: .seconds(1000))
            try await Workbench.settle()
            rate.set(bytesPerSecond: nil)
            while deferred.outcome == nil {
                await clock.advanceTime(by: .seconds(1))
                try await Workbench.settle()
            }
            #expect(try await deferred.get()["size"] == 1_048_576)
        }
    }

    @Test func slowSpeed_isTimeout_whereAllTogetherAreTooSlow() async throws {
        let clock = NIOAsyncTestingEventLoop()
        try await Workbench.run(against: { request, _ in [Self.head(request), .hold] }, timers: clock) {
            $0.http.lowSpeed.bytes = 1000
            $0.http.lowSpeed.seconds = 10
        } _: { origin, bench in
            let deferred = try bench.start(download(origin, 2))
            await origin.log.reaches(2)
            await clock.turn(by: .seconds(1)) { deferred.outcome == nil }
            let error = try await bench.failure(of: deferred)
            #expect(error.kind == .timeout && error.isRetryable)
            #expect(error.message.contains("lowSpeed"))
        }
    }
}
