import JobModel
import NIOCore
import NIOEmbedded
import Synchronization
import Testing

@testable import JobServer

@Suite struct UserBudgetTests {
    private let loop = NIOAsyncTestingEventLoop()

    @Test func work_waits_untilThereIsRoom() async {
        let budget = UserBudget(limit: 1000)
        await budget.room(on: loop)
        budget.add(999, as: .work)
        await budget.room(on: loop)
        budget.add(500, as: .work)
        #expect(!budget.hasRoom)
        let went = Count()
        budget.whenRoom(on: loop) { went.add() }
        budget.add(-400, as: .work)
        await loop.run()
        #expect(went.now == 0)
        budget.add(-200, as: .work)
        await loop.run()
        #expect(went.now == 1 && budget.used == 899)
    }

    @Test func registrations_areRefused_pastHalfOfTheBound() {
        let budget = UserBudget(limit: 1000)
        var first = try? BudgetCharge(registering: 400, in: budget)
        #expect(throws: ProtocolError.self) { try BudgetCharge(registering: 101, in: budget) }
        #expect(budget.hasRoom, "there is always room for work")
        #expect(first?.resize(to: 700) == true && first?.resize(to: 800) == false)
        #expect(first?.resize(to: 400) == true)
        #expect(budget.used == 400)
        first = nil
        #expect(budget.used == 0)
    }

    @Test func longLines_areReadOneAfterTheOther_pastAnEighthOfTheBound() async {
        let budget = UserBudget(limit: 8000)
        let reserved = Mutex<[BudgetCharge]>([])
        for size in [1000, 1000, 100_000] {
            budget.whenReserved(line: size, on: loop) { charge in reserved.withLock { $0.append(charge) } }
        }
        for size in [1000, 1000, 100_000] {
            await loop.run()
            #expect(reserved.withLock(\.count) == 1 && budget.used == size, "one line always has room")
            reserved.withLock { $0 = [] }
        }
        #expect(budget.used == 0 && budget.hasRoom)
    }

    @Test func connectionThatReadsNothing_isClosed_whileOthersWait() async {
        let budget = UserBudget(limit: 1_000_000)
        let (idle, reading, went) = (Count(), Count(), Count())
        let silent = Outbox(limit: 1 << 20, budget: budget) { idle.add() }
        let reader = Outbox(limit: 1 << 20, budget: budget) { reading.add() }
        silent.send(answer: Array(repeating: 0, count: 500_000))
        for _ in 0..<2 { reader.send(answer: Array(repeating: 0, count: 100_000)) }
        budget.add(500_000, as: .work)
        // Without waiting connections, none is looked for.
        await loop.advanceTime(by: .seconds(100))
        #expect(idle.now == 0)
        budget.whenRoom(on: loop) { went.add() }
        for _ in 0..<20 where went.now == 0 {
            reader.send(answer: Array(repeating: 0, count: 100_000))
            if let piece = reader.next() { reader.sent(piece.readableBytes) }
            await loop.advanceTime(by: .seconds(1))
        }
        #expect(idle.now == 1 && reading.now == 0 && went.now == 1)
    }

    @Test func largestBacklog_isClosed_farPastTheBound() {
        let budget = UserBudget(limit: 100_000)
        let (large, small) = (Count(), Count())
        let outboxes = [
            Outbox(limit: 1 << 20, budget: budget) { large.add() },
            Outbox(limit: 1 << 20, budget: budget) { small.add() },
        ]
        outboxes[0].send(answer: Array(repeating: 0, count: 80_000))
        #expect(large.now == 0)
        outboxes[1].send(answer: Array(repeating: 0, count: 39_999))
        #expect(large.now == 1 && small.now == 0 && budget.used == 40_000)
    }
}
