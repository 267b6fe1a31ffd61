import FakeDaemon
import JobModel
import Synchronization
import Testing

@testable import JobClient

/// The calls that `body` makes, as method and params; each is answered with `answer`.
private func calls(answer: JSON, _ body: (JobClient) async throws -> Void) async throws -> [JSON] {
    let seen = Mutex<[JSON]>([])
    try await FakeDaemon.with { daemon in
        while let call = daemon.call() {
            seen.withLock { $0.append(["method": call["method"] ?? .null, "params": call["params"] ?? .null]) }
            daemon.answer(call, answer)
        }
    } _: { path in
        try await JobClient.withConnection(path: path) { try await body($0) }
    }
    return seen.withLock { $0 }
}

private let job: JSON = ["job": 7, "state": "queued"]

@Suite struct JobClientMethodTests {
    @Test func submit_sendsTheSpecAsParams_withWatchBesideIt() async throws {
        let spec: JSON = ["source": ["type": "value", "value": 1], "label": "one"]
        let sent = try await calls(answer: ["job": 7, "state": "queued", "created": false, "watch": "w1"]) { client in
            let submission = try await client.submit(spec, watch: true)
            #expect(submission.id == 7)
            #expect(submission.watch == "w1")
            #expect(!submission.isCreated)
        }
        let params: JSON = ["source": ["type": "value", "value": 1], "label": "one", "watch": true]
        #expect(sent == [["method": "job.submit", "params": params]])
    }

    @Test func list_sendsWhatTheFilterNames() async throws {
        let sent = try await calls(answer: ["jobs": [job], "next": 3]) { client in
            var filter = JobClient.Filter()
            filter.states = ["running"]
            filter.queue = "q"
            filter.tag = "t"
            filter.source = "url"
            filter.parent = 2
            filter.isOldestFirst = true
            let page = try await client.list(filter, after: 9, limit: 5)
            #expect(page.jobs.map(\.id) == [7])
            #expect(page.next == 3)
            _ = try await client.list()
        }
        let params: JSON = [
            "state": ["running"], "queue": "q", "tag": "t", "source": "url", "parent": 2, "after": 9, "limit": 5,
            "order": "oldest",
        ]
        #expect(
            sent == [["method": "job.list", "params": params], ["method": "job.list", "params": [:]]])
    }

    @Test func watch_sendsItsSelection() async throws {
        let sent = try await calls(answer: ["watch": "w1", "jobs": [job], "truncated": true]) { client in
            let watch = try await client.watch(.jobs([7]), interval: 0.5, children: true)
            #expect(watch.id == "w1")
            #expect(watch.jobs.map(\.id) == [7])
            #expect(watch.isTruncated)
            _ = try await client.watch(.tag("t"))
            _ = try await client.watch(.all)
            try await client.unwatch("w1")
        }
        #expect(
            sent == [
                ["method": "job.watch", "params": ["jobs": [7], "interval": 0.5, "children": true]],
                ["method": "job.watch", "params": ["tag": "t"]],
                ["method": "job.watch", "params": ["all": true]],
                ["method": "job.unwatch", "params": ["watch": "w1"]],
            ])
    }

    @Test func change_sendsIdsOrConditions() async throws {
        let sent = try await calls(answer: ["count": 2, "skipped": 1]) { client in
            let answer = try await client.change(.jobs([1, 2, 3]), .set(["priority": 5]), dryRun: true)
            #expect(answer["count"] == 2 && answer["skipped"] == 1)
            var filter = JobClient.Filter()
            (filter.states, filter.ids, filter.owner) = (["failed"], 3...9, "all")
            _ = try await client.change(.matching(filter), .retry(from: .start))
            _ = try await client.wait(forAll: JobClient.Filter(), timeout: 2)
        }
        #expect(
            sent == [
                ["method": "job.set", "params": ["priority": 5, "jobs": [1, 2, 3], "dryRun": true]],
                [
                    "method": "job.retry",
                    "params": ["from": "start", "select": ["state": ["failed"], "ids": [3, 9], "owner": "all"]],
                ], ["method": "job.wait", "params": ["select": ["all": true], "timeout": 2]],
            ])
    }

    @Test func usage_readsAllPages() async throws {
        let users = try await FakeDaemon.with { daemon in
            for call in daemon.calls(1) { daemon.answer(call, ["users": [["uid": 1]], "next": 1]) }
            for call in daemon.calls(1) {
                daemon.answer(call, ["users": [["uid": call["params"]?["after"] == 1 ? 2 : 0]], "next": .null])
            }
            daemon.waitForEnd()
        } _: { path in
            try await JobClient.withConnection(path: path) { try await $0.usage() }
        }
        #expect(users == [["uid": 1], ["uid": 2]])
    }

    @Test func answers_throwProtocolViolation_whenAMemberIsMissing() async throws {
        _ = try await calls(answer: [:]) { client in
            let calls: [@Sendable () async throws -> Void] = [
                { _ = try await client.submit([:]) }, { _ = try await client.get(1) },
                { _ = try await client.wait([1]) }, { _ = try await client.list() },
                { _ = try await client.watch(.all) }, { _ = try await client.queues() },
                { for try await _ in client.result(of: 1) {} },
            ]
            for call in calls {
                let error = await #expect(throws: JobClientError.self) { try await call() }
                #expect(error?.code == .protocolViolation)
            }
        }
    }

    @Test func result_asksForPieceAfterPiece_untilTheLast() async throws {
        let whole = Array("0123456789".utf8)
        let pieces = Mutex<[Int]>([])
        let bytes = try await FakeDaemon.with { daemon in
            while let call = daemon.call() {
                let offset = call["params"]?["offset"]?.int ?? 0
                pieces.withLock { $0.append(offset) }
                let piece = whole[offset...].prefix(4)
                daemon.answer(
                    call,
                    [
                        "data": .string(Base64.encode(Array(piece))), "offset": JSON(offset), "size": 10,
                        "eof": .bool(offset + piece.count == whole.count),
                    ])
            }
        } _: { path in
            try await JobClient.withConnection(path: path) { client in
                try await client.result(of: 1).reduce(into: [UInt8]()) { $0 += $1.bytes }
            }
        }
        #expect(bytes == whole)
        #expect(pieces.withLock { $0 } == [0, 4, 8])
    }

    @Test func result_throwsProtocolViolation_whenPiecesAreEmptyForEver() async throws {
        _ = try await calls(answer: ["data": "", "offset": 0, "size": 10, "eof": false]) { client in
            let error = await #expect(throws: JobClientError.self) {
                for try await _ in client.result(of: 1) {}
            }
            #expect(error?.code == .protocolViolation)
        }
    }
}
