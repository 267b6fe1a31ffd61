import JobModel
import JobProtocol
import Testing

@testable import JobClient

@Suite struct ConversationTests {
    private func line(_ text: String) -> LineFramer.Frame { .line(Array(text.utf8)) }

    /// What became of a waiter: its name and the code of its error, if it got one.
    private func outcome(_ action: Conversation<String>.Action?) -> String {
        switch action {
        case .answer(let waiter, .success(let result)): "\(waiter) got \(result)"
        case .answer(let waiter, .failure(let error)): "\(waiter) got \(error.code)"
        case .deliver: "an event"
        case .end(let error): "end \(error.map { "\($0.code)" } ?? "by this side")"
        case nil: "nothing"
        }
    }

    @Test func call_isRefused_whenTooManyWait() {
        var conversation = Conversation<String>(limit: 2)
        #expect(outcome(conversation.call(1, length: 10, waiter: "a")) == "nothing")
        #expect(outcome(conversation.call(2, length: 10, waiter: "b")) == "nothing")
        #expect(outcome(conversation.call(3, length: 10, waiter: "c")) == "c got tooManyCalls")
        #expect(conversation.receive(line(#"{"jsonrpc":"2.0","id":1,"result":0}"#)).map(outcome) == ["a got 0"])
        #expect(outcome(conversation.call(4, length: 10, waiter: "d")) == "nothing")
    }

    @Test func abandonedCall_keepsItsPlace_untilItsAnswerComes() {
        var conversation = Conversation<String>(limit: 1)
        #expect(outcome(conversation.call(1, length: 10, waiter: "a")) == "nothing")
        #expect(outcome(conversation.abandon(1)) == "a got cancelled")
        #expect(outcome(conversation.abandon(1)) == "nothing")
        #expect(outcome(conversation.call(2, length: 10, waiter: "b")) == "b got tooManyCalls")
        #expect(conversation.receive(line(#"{"jsonrpc":"2.0","id":1,"result":0}"#)).isEmpty)
        #expect(outcome(conversation.call(3, length: 10, waiter: "c")) == "nothing")
    }

    @Test func end_failsAllWaiters_andEverythingAfterIt() {
        var conversation = Conversation<String>(limit: 9)
        #expect(outcome(conversation.call(1, length: 10, waiter: "a")) == "nothing")
        #expect(outcome(conversation.call(2, length: 10, waiter: "b")) == "nothing")
        #expect(
            conversation.end(.closedThere).map(outcome) == ["a got closed", "b got closed", "end closed"])
        #expect(conversation.end(nil).isEmpty)
        #expect(conversation.receive(line("nonsense")).isEmpty)
        #expect(outcome(conversation.call(3, length: 10, waiter: "c")) == "c got closed")
    }

    @Test func tooLongAnAnswer_endsTheConversation() {
        var conversation = Conversation<String>(limit: 9)
        #expect(conversation.receive(.tooLong).map(outcome) == ["end protocolViolation"])
    }
}
