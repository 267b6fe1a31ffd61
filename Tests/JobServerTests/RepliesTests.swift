import JobModel
import JobProtocol
import Synchronization
import Testing

@testable import JobServer

@Suite struct RepliesTests {
    private final class Log: Sendable {
        let entries = Mutex<[String]>([])
        func add(_ entry: String) { entries.withLock { $0.append(entry) } }
        var all: [String] { entries.withLock(\.self) }
    }

    private func lines(_ outbox: Outbox) -> [String] { outbox.allLines() }

    @Test func answer_isSent_andThenWhatFollowsIt() async {
        let (outbox, log) = (Outbox(limit: 1 << 20) {}, Log())
        let replies = Replies(outbox: outbox) { log.add("sent") }
        replies.succeed(1, "x") {
            outbox.send(answer: Array("afterwards".utf8))
            log.add("afterwards")
        }
        #expect(lines(outbox) == [#"{"jsonrpc":"2.0","id":1,"result":"x"}"#, "afterwards"])
        #expect(log.all == ["afterwards", "sent"])
    }

    @Test func notification_isNotAnswered_butCounted() async {
        let (outbox, log) = (Outbox(limit: 1 << 20) {}, Log())
        Replies(outbox: outbox) { log.add("sent") }.succeed(nil, 1)
        Replies(outbox: outbox) { log.add("sent") }.fail(nil, ProtocolError(.internal, "x"))
        let batch = Replies(calls: 2, batch: 512, outbox: outbox) { log.add("sent") }
        batch.succeed(nil, 1)
        batch.fail(nil, ProtocolError(.internal, "x"))
        #expect(lines(outbox).isEmpty)
        #expect(log.all == ["sent", "sent", "sent"])
    }

    @Test func batch_isAnsweredAsOneArray_onceAllOfItIs() async throws {
        let (outbox, log) = (Outbox(limit: 1 << 20) {}, Log())
        let replies = Replies(calls: 4, batch: 1030, outbox: outbox) { log.add("sent") }
        outbox.send(answer: Array("before".utf8))
        replies.succeed(2, "two") { log.add("afterwards") }
        replies.succeed(nil, "notification")
        replies.fail(.null, ProtocolError(.invalidRequest, "x"))
        #expect(log.all.isEmpty)
        replies.succeed(1, "one")
        #expect(log.all == ["afterwards", "sent"])
        let lines = lines(outbox)
        #expect(lines.count == 2 && lines[0] == "before")
        guard case .batch(let answers) = try ServerMessage(Array(lines[1].utf8)) else {
            Issue.record("no batch")
            return
        }
        #expect(
            answers == [
                .answer(id: 2, .success("two")), .answer(id: nil, .failure(ProtocolError(.invalidRequest, "x"))),
                .answer(id: 1, .success("one")),
            ])
    }

    @Test func batchOfOneCall_isAnArray() async {
        let outbox = Outbox(limit: 1 << 20) {}
        Replies(batch: 257, outbox: outbox) {}.succeed(1, nil)
        #expect(lines(outbox) == [#"[{"jsonrpc":"2.0","id":1,"result":null}]"#])
    }

    @Test func batch_refusesWhatFindsNoRoom_andKeepsWithinIt() async throws {
        let outbox = Outbox(limit: 1 << 20) {}
        let limit = 10 * 256 + 3000
        let replies = Replies(calls: 10, batch: 2570, limit: limit, outbox: outbox) {}
        let long = JSON.string(String(repeating: "x", count: 1000))
        for id in 0..<10 {
            replies.succeed(JSON(id), long)
        }
        let line = try #require(lines(outbox).first)
        #expect(line.utf8.count <= limit)
        let answers = try #require(try JSON(parsing: Array(line.utf8)).array)
        #expect(answers.count == 10)
        let refused = answers.filter { $0["error"]?["code"] == -32003 }
        let done = answers.filter { $0["result"] == long }
        #expect(done.count >= 2 && refused.count + done.count == 10)
        #expect(replies.isFull && !refused.isEmpty)
    }
}

extension Replies {
    fileprivate func succeed(_ id: JSON?, _ result: JSON, afterwards: (@Sendable () -> Void)? = nil) {
        succeed(id, answer: id.map { Answer.success(id: $0, result: result.utf8) }, afterwards: afterwards)
    }
}
