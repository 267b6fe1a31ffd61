import JobModel
import JobProtocol
import Synchronization
import Testing

@testable import JobServer

/// Answers to single calls and to batches.
@Suite struct BatchTests {
    private final class Log: Sendable {
        let entries = Mutex<[String]>([])
        func add(_ entry: String) { entries.withLock { $0.append(entry) } }
        var all: [String] { entries.withLock(\.self) }
    }

    private let outbox = Outbox(limit: 1 << 20) {}
    private let budget = UserBudget(limit: 1 << 20)

    /// Calls with these ids, nil for a notification, in one batch unless they are alone.
    private func calls(_ ids: [JSON?], inBatch: Bool = true, limit: Int = 1 << 20) throws -> [Call] {
        let requests = ids.map { Request(id: $0, method: "m", params: [:]) }
        let batch =
            inBatch ? try Batch(requests.map { IncomingCall($0) }, limit: limit, outbox: outbox, budget: budget) : nil
        return requests.map {
            Call(request: $0, batch: batch, charge: BudgetCharge(work: 0, in: budget), outbox: outbox)
        }
    }

    @Test func answer_isSent_andThenWhatFollowsIt() throws {
        try calls([1], inBatch: false)[0].succeed(text: JSON("x").utf8) { [outbox] in
            outbox.send(answer: Array("afterwards".utf8))
        }
        #expect(outbox.allLines() == [#"{"jsonrpc":"2.0","id":1,"result":"x"}"#, "afterwards"])
    }

    @Test func notification_isNotAnswered_butCounted() throws {
        let log = Log()
        for inBatch in [false, true] {
            let calls = try calls([nil, nil], inBatch: inBatch)
            calls[0].succeed(text: [48]) { log.add("afterwards") }
            calls[1].fail(ProtocolError(.internal, "x"))
        }
        #expect(outbox.allLines().isEmpty)
        #expect(log.all == ["afterwards", "afterwards"])
        #expect(budget.used == 0)
    }

    @Test func batch_isAnsweredAsOneArray_onceAllOfItIs() throws {
        let log = Log()
        let calls = try calls([1, 2, nil, .null])
        outbox.send(answer: Array("before".utf8))
        calls[1].succeed(text: JSON("two").utf8) { log.add("afterwards") }
        calls[2].succeed("notification")
        calls[3].fail(ProtocolError(.invalidRequest, "x"))
        #expect(log.all.isEmpty && budget.used > 0)
        calls[0].succeed("one")
        #expect(log.all == ["afterwards"])
        let lines = outbox.allLines()
        #expect(lines.count == 2 && lines[0] == "before" && budget.used == 0)
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

    /// However long its id is, an answer that may not wait for the client closes no connection.
    @Test(arguments: [1, 4096]) func answer_isRefused_ifItIsLongerThanWhatMayWait(idSize: Int) throws {
        let limit = 1 << 16
        let hasClosed = Count()
        let outbox = Outbox(limit: limit) { hasClosed.add() }
        let id = JSON.string(String(repeating: "i", count: idSize))
        let call = Call(
            request: Request(id: id, method: "m", params: [:]), batch: nil, charge: BudgetCharge(work: 0, in: budget),
            outbox: outbox)
        let rest = Answer.success(id: id, result: []).count
        for size in [limit - 1, limit, limit + idSize, limit + 2 * idSize] {
            call.succeed(text: Array(repeating: UInt8(ascii: "1"), count: size - rest))
            let line = try #require(outbox.allLines().first)
            #expect(size < limit ? line.utf8.count == size : line.contains("\"error\""), "\(size)")
        }
        #expect(hasClosed.now == 0)
    }

    @Test func batchOfOneCall_isAnArray() throws {
        try calls([1])[0].succeed(.null)
        #expect(outbox.allLines() == [#"[{"jsonrpc":"2.0","id":1,"result":null}]"#])
    }

    @Test func batch_refusesWhatFindsNoRoom_andKeepsWithinIt() throws {
        let limit = 10 * 256 + 3000
        let calls = try calls((0..<10).map { JSON($0) }, limit: limit)
        let long = JSON.string(String(repeating: "x", count: 1000))
        for call in calls {
            let fits = call.room >= long.utf8.count
            #expect(call.batch?.isFull == false || !fits)
            call.succeed(long)
        }
        let line = try #require(outbox.allLines().first)
        #expect(line.utf8.count < limit)
        let answers = try #require(try JSON(parsing: Array(line.utf8)).array)
        #expect(answers.count == 10)
        let refused = answers.filter { $0["error"]?["code"] == -32003 }
        let done = answers.filter { $0["result"] == long }
        #expect(done.count >= 2 && refused.count + done.count == 10)
        #expect(calls[0].batch?.isFull == true && !refused.isEmpty)
    }

    @Test func batch_isRefused_whenItsRefusalsWouldNotFit() {
        #expect(throws: ProtocolError.self) { try calls([1, 2, 3], limit: 3 * 256) }
    }
}
