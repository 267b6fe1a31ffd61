import JobCore
import JobModel
import Testing

@testable import JobEngine

@Suite struct InboxTests {
    /// An entry that its size tells from others.
    private static func entry(_ size: Int) -> Inbox.Entry { Inbox.Entry(size: size) { _ in } }

    @Test func users_haveTurns_whenOneAsksForMuch() {
        let inbox = Inbox()
        for _ in 0..<1000 { inbox.put(Self.entry(1), of: 1) }
        inbox.put(Self.entry(2), of: 2)
        inbox.put(Self.entry(3), of: nil)
        let taken = inbox.take(entries: 100, bytes: .max).map(\.size)
        #expect(taken.firstIndex(of: 2) ?? .max < 20)
        #expect(taken.firstIndex(of: 3) ?? .max < 20)
        #expect(taken.count < 120)
        #expect(inbox.take(entries: 10_000, bytes: .max).count == 1002 - taken.count)
    }

    @Test func longEntry_isAloneInItsTurn() {
        let inbox = Inbox()
        for _ in 0..<4 { inbox.put(Self.entry(1 << 20), of: 1) }
        for _ in 0..<4 { inbox.put(Self.entry(10), of: 2) }
        #expect(inbox.take(entries: 1024, bytes: 1 << 20).map(\.size) == [1 << 20])
        #expect(inbox.take(entries: 1024, bytes: 1 << 20).map(\.size) == [10, 10, 10, 10, 1 << 20])
    }

    @Test func requests_countAsMuchTime_asTheyTake() {
        let caller = Caller(uid: 1, isAdmin: false)
        let ids = Array(JobID(1)...256)
        let change = CoreInput.request(1, .changeAll(ids, .cancel, onlyCounts: false), caller)
        let watch = CoreInput.request(2, .watch(WatchScope(.jobs(ids)), 1), caller)
        #expect(change.size == 256 << 10 && watch.size == 16 << 10)
    }

    @Test func entriesOfAUser_keepTheirOrder() {
        let inbox = Inbox()
        for number in 0..<100 { inbox.put(Self.entry(number), of: UInt32(number % 3)) }
        var taken: [Int] = []
        while case let some = inbox.take(entries: 7, bytes: .max), !some.isEmpty { taken += some.map(\.size) }
        #expect(taken.sorted() == Array(0..<100))
        for user in 0..<3 {
            let own = taken.filter { $0 % 3 == user }
            #expect(own == own.sorted())
        }
    }
}
