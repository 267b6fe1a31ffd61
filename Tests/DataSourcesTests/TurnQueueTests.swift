import Testing

@testable import DataSources

@Suite struct TurnQueueTests {
    @Test func users_haveTheirTurns_oneAfterTheOther() {
        var queue = TurnQueue<Int>(perUser: 10, total: 100)
        for number in 0..<6 { queue.append(number, for: 1) }
        for number in 10..<12 { queue.append(number, for: 2) }
        queue.append(20, for: 3)
        var order: [Int] = []
        while let next = queue.next() { order.append(next.element) }
        #expect(order == [0, 10, 20, 1, 11, 2, 3, 4, 5])
    }

    @Test func user_hasNoMoreThanItsShare_andAllNoMoreThanThereAre() {
        var queue = TurnQueue<Int>(perUser: 2, total: 5)
        for user in 1...4 { for number in 0..<10 { queue.append(number, for: UInt32(user)) } }
        var running: [UInt32: Int] = [:]
        while let next = queue.next() { running[next.user, default: 0] += 1 }
        #expect(running.values.reduce(0, +) == 5)
        #expect(running.values.allSatisfy { $0 <= 2 })
        // One that never ends costs only its user a place.
        queue.finish(2)
        #expect(queue.next() != nil)
        #expect(queue.next() == nil)
    }
}
