import Synchronization
import Testing

@testable import JobServer

@Suite struct GateTests {
    /// Counts who went through.
    private final class Count: Sendable {
        private let value = Mutex(0)
        private let stream = AsyncStream.makeStream(of: Void.self)

        var now: Int { value.withLock { $0 } }

        func add() {
            value.withLock { $0 += 1 }
            stream.continuation.yield()
        }

        /// Returns once there are so many more.
        func next(_ count: Int) async {
            var iterator = stream.stream.makeAsyncIterator()
            for _ in 0..<count { await iterator.next() }
        }
    }

    @Test func soMany_areInside_andTheOthersFollowOneByOne() async {
        let gate = Gate { 3 }
        for _ in 0..<3 { await gate.enter() }
        let entered = Count()
        await withTaskGroup(of: Void.self) { group in
            for _ in 0..<2 {
                group.addImmediateTask {
                    await gate.enter()
                    entered.add()
                }
            }
            #expect(entered.now == 0)
            for count in 1...2 {
                gate.leave()
                await entered.next(1)
                #expect(entered.now == count)
            }
        }
        for _ in 0..<3 { gate.leave() }
        await gate.enter()
    }

    @Test func those_whoAreTooManyNow_stayInside() async {
        let most = Atomic(8)
        let gate = Gate { most.load(ordering: .relaxed) }
        for _ in 0..<8 { await gate.enter() }
        most.store(1, ordering: .relaxed)
        let entered = Count()
        await withTaskGroup(of: Void.self) { group in
            group.addImmediateTask {
                await gate.enter()
                entered.add()
            }
            for _ in 1..<8 { gate.leave() }
            #expect(entered.now == 0)
            gate.leave()
        }
        #expect(entered.now == 1)
    }

    @Test func all_goOn_onceMoreMayBeInside() async {
        let most = Atomic(1)
        let gate = Gate { most.load(ordering: .relaxed) }
        await gate.enter()
        await withTaskGroup(of: Void.self) { group in
            for _ in 0..<3 { group.addImmediateTask { await gate.enter() } }
            most.store(.max, ordering: .relaxed)
            gate.leave()
        }
    }

    @Test func nobody_overtakesWhoWaits_andTheLargestGoesAlone() async {
        let gate = Gate { 4 }
        await gate.enter(3)
        let (large, small) = (Count(), Count())
        await withTaskGroup(of: Void.self) { group in
            group.addImmediateTask {
                await gate.enter(100)
                large.add()
            }
            group.addImmediateTask {
                await gate.enter()
                small.add()
            }
            #expect(large.now == 0 && small.now == 0)
            gate.leave(3)
            await large.next(1)
            #expect(small.now == 0)
            gate.leave(100)
        }
        #expect(small.now == 1)
    }
}
