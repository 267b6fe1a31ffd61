import JobCore
import JobModel
import Synchronization
import Testing

@testable import JobEngine

@Suite struct RoomWatchTests {
    @Test func shortage_isToldOnce_andItsEnd() async {
        let free = Mutex<Int64?>(5)
        let (told, tell) = AsyncStream.makeStream(of: String?.self)
        let watch = RoomWatch(path: "/state", minimum: 10, freeBytes: { _ in free.withLock { $0 } }) { tell.yield($0) }
        var events = told.makeAsyncIterator()
        watch.submitted(at: 1)
        let shortage = await events.next()
        #expect(shortage??.contains("/state") == true && shortage??.contains("5") == true)
        // It looks by itself from now on.
        free.withLock { $0 = 10 }
        #expect(await events.next() == .some(nil))
    }

    @Test func shortage_isTold_beforeAnyJobIsSubmitted() async throws {
        let told = Mutex<[Bool]>([])
        let watch = RoomWatch(path: "/state", minimum: 10, freeBytes: { _ in 5 }) { shortage in
            told.withLock { $0.append(shortage != nil) }
        }
        await watch.begin()
        #expect(told.withLock { $0.first } == true)
        try await AskingTests.withEngine({ $0.minimumFree = .max }) { engine in
            let caller = Caller(uid: 7, isAdmin: false)
            let value = try engine.admission.spec(["source": ["type": "value", "value": 1]], from: caller)
            let new = NewJob(value)
            let answer = await engine.ask(.submit([new]), for: caller)
            guard case .failure(let error)? = answer.submitted?.first else {
                Issue.record("\(answer)")
                return
            }
            #expect(error.message.contains("make room"))
        }
    }

    @Test func room_isEnough_whereItIsNotKnown_orNoneIsAskedFor() async {
        let looked = Mutex(0)
        let (told, tell) = AsyncStream.makeStream(of: Void.self)
        let watch = RoomWatch(
            path: "/state", minimum: 10,
            freeBytes: { _ in
                looked.withLock { $0 += 1 }
                tell.yield()
                return nil
            }
        ) { _ in Issue.record("Nothing is short.") }
        watch.submitted(at: 1)
        var looks = told.makeAsyncIterator()
        _ = await looks.next()
        // At most once a second.
        watch.submitted(at: 2)
        watch.submitted(at: 2_000_000_000)
        _ = await looks.next()
        #expect(looked.withLock { $0 } == 2)
        let none = RoomWatch(path: "/state", minimum: 0, freeBytes: { _ in 0 }) { _ in
            Issue.record("None is asked for.")
        }
        none.submitted(at: 1)
    }
}
