import Synchronization
import Testing

@testable import JobServer

@Suite struct TurnsTests {
    /// Counts what has gone on.
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

    @Test func call_waitsForItsTurn_whileAllAreInUse() async {
        let turns = Turns { false }
        for _ in 0..<Turns.mostCalls { await turns.beginCall() }
        let begun = Count()
        await withTaskGroup(of: Void.self) { group in
            for _ in 0..<2 {
                group.addTask {
                    await turns.beginCall()
                    begun.add()
                }
            }
            turns.endCall()
            await begun.next(1)
            #expect(begun.now == 1)
            turns.endCall()
        }
        #expect(begun.now == 2)
        for _ in 0..<Turns.mostCalls { turns.endCall() }
        await turns.beginCall()
    }

    @Test func callsInUse_areFewer_whileOthersAreThere() async {
        let isShared = Atomic(false)
        let turns = Turns { isShared.load(ordering: .relaxed) }
        for _ in 0..<Turns.mostCalls { await turns.beginCall() }
        isShared.store(true, ordering: .relaxed)
        let begun = Count()
        await withTaskGroup(of: Void.self) { group in
            group.addTask {
                await turns.beginCall()
                begun.add()
            }
            for _ in Turns.mostSharedCalls..<Turns.mostCalls { turns.endCall() }
            #expect(begun.now == 0)
            turns.endCall()
        }
        #expect(begun.now == 1)
    }

    @Test func longLines_areReadOneAtATime() async {
        let turns = Turns { false }
        await turns.beginLongLine()
        let begun = Count()
        await withTaskGroup(of: Void.self) { group in
            for _ in 0..<2 {
                group.addTask {
                    await turns.beginLongLine()
                    begun.add()
                }
            }
            #expect(begun.now == 0)
            for count in 1...2 {
                turns.endLongLine()
                await begun.next(1)
                #expect(begun.now == count)
            }
        }
        turns.endLongLine()
        await turns.beginLongLine()
    }

    @Test func submissions_areUnbounded_whileNobodyElseIsThere() async {
        let turns = Turns { false }
        #expect(turns.largestGroup == .max)
        for _ in 0..<100 { await turns.beginSubmissions(Turns.mostSubmissions) }
    }

    @Test func submissions_waitForTheOnesBefore_whileOthersAreThere() async {
        let turns = Turns { true }
        #expect(turns.largestGroup == Turns.submissionGroup)
        for _ in 0..<2 { await turns.beginSubmissions(Turns.submissionGroup) }
        let begun = Count()
        await withTaskGroup(of: Void.self) { group in
            group.addTask {
                await turns.beginSubmissions(Turns.submissionGroup)
                begun.add()
            }
            group.addTask {
                await turns.beginSubmissions(Turns.submissionGroup)
                begun.add()
            }
            #expect(begun.now == 0)
            turns.endSubmissions(Turns.submissionGroup)
            await begun.next(1)
            #expect(begun.now == 1)
            turns.endSubmissions(Turns.submissionGroup)
        }
        #expect(begun.now == 2)
    }

    @Test func largeGroup_goesOnAlone_whereOthersCameMeanwhile() async {
        let isShared = Atomic(false)
        let turns = Turns { isShared.load(ordering: .relaxed) }
        await turns.beginSubmissions(1000)
        isShared.store(true, ordering: .relaxed)
        await withTaskGroup(of: Void.self) { group in
            group.addTask { await turns.beginSubmissions(500) }
            group.addTask { await turns.beginSubmissions(500) }
            turns.endSubmissions(1000)
            await group.next()
            turns.endSubmissions(500)
        }
    }
}
