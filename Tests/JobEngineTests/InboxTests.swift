import JobModel
import JobCore
import Testing

@testable import JobEngine

@Suite struct InboxTests {
    private static func owner(_ entry: Inbox.Entry) -> Int64 {
        switch entry {
        case .input(.abandon(let number)): number
        case .input(.run(let run, _)): run.number
        default: 0
        }
    }

    @Test func users_haveTurns_whenOneAsksForMuch() {
        let inbox = Inbox()
        for _ in 0..<1000 { inbox.put(.input(.abandon(1)), of: 1) }
        inbox.put(.input(.abandon(2)), of: 2)
        inbox.put(.input(.tick), of: nil)
        let taken = inbox.take(entries: 100, bytes: .max).map(Self.owner)
        #expect(taken.firstIndex(of: 2) ?? .max < 20)
        #expect(taken.firstIndex(of: 0) ?? .max < 20)
        #expect(taken.count < 120)
        #expect(inbox.take(entries: 10_000, bytes: .max).count == 1002 - taken.count)
    }

    @Test func longEntry_isAloneInItsTurn() {
        let inbox = Inbox()
        func save(_ run: Int64, _ size: Int) -> Inbox.Entry {
            .input(.run(RunID(life: 1, number: run), .checkpoint([UInt8](repeating: 0, count: size), 1)))
        }
        for _ in 0..<4 { inbox.put(save(1, 1 << 20), of: 1) }
        for _ in 0..<4 { inbox.put(save(2, 10), of: 2) }
        #expect(inbox.take(entries: 1024, bytes: 1 << 20).map(Self.owner) == [1])
        #expect(inbox.take(entries: 1024, bytes: 1 << 20).map(Self.owner) == [2, 2, 2, 2, 1])
    }

    @Test func entriesOfAUser_keepTheirOrder() {
        let inbox = Inbox()
        for number in 0..<100 { inbox.put(.input(.abandon(Int64(number))), of: UInt32(number % 3)) }
        var taken: [Int64] = []
        while case let some = inbox.take(entries: 7, bytes: .max), !some.isEmpty { taken += some.map(Self.owner) }
        #expect(taken.sorted() == Array(0..<100))
        for user in 0..<Int64(3) {
            let own = taken.filter { $0 % 3 == user }
            #expect(own == own.sorted())
        }
    }
}
