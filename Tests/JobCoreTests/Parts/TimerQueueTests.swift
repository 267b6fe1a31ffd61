import JobModel
import TestSupport
import Testing

@testable import JobCore

@Suite struct TimerQueueTests {
    private func expect(
        _ timers: inout TimerQueue, at now: Int64, fire expected: [CoreTimer],
        _ location: SourceLocation = #_sourceLocation
    ) {
        var fired: [CoreTimer] = []
        while let timer = timers.popDue(at: now) { fired.append(timer) }
        #expect(fired == expected, sourceLocation: location)
    }

    @Test func timers_fireInTheOrderOfTheirTimes_andOfTheirSetting() {
        var timers = TimerQueue()
        timers.set(.due, at: 30)
        timers.set(.timer(1), at: 10)
        timers.set(.timer(2), at: 30)
        timers.set(.deadline, at: 20)
        #expect(timers.next == 10 && timers.count == 4)
        expect(&timers, at: 9, fire: [])
        expect(&timers, at: 20, fire: [.timer(1), .deadline])
        #expect(timers.next == 30)
        expect(&timers, at: 1000, fire: [.due, .timer(2)])
        #expect(timers.next == nil && timers.count == 0)
    }

    @Test func timer_firesOnce_whenItWasSetLast() {
        var timers = TimerQueue()
        timers.set(.due, at: 10)
        timers.set(.due, at: 30)
        #expect(timers.next == 30 && timers.count == 1)
        expect(&timers, at: 29, fire: [])
        timers.set(.due, at: 5)
        expect(&timers, at: 1000, fire: [.due])
    }

    @Test func timer_isMovedForwardOnly_whereSetEarlier() {
        var timers = TimerQueue()
        timers.setEarlier(.due, at: 20)
        timers.setEarlier(.due, at: 30)
        #expect(timers.next == 20)
        timers.setEarlier(.due, at: 10)
        #expect(timers.next == 10 && timers.count == 1)
    }

    @Test func timer_doesNotFire_onceItIsCleared() {
        var timers = TimerQueue()
        timers.set(.due, at: 10)
        timers.set(.deadline, at: 20)
        timers.clear(.due)
        timers.clear(.storage)
        #expect(timers.next == 20 && !timers.isSet(.due) && timers.isSet(.deadline))
        expect(&timers, at: 100, fire: [.deadline])
    }

    @Test func timers_areWhatAListOfThemIs_whateverHappens() {
        var generator = SeededGenerator(seed: 3)
        var timers = TimerQueue()
        var model: [(timer: CoreTimer, time: Int64)] = []
        var now: Int64 = 0
        for _ in 0..<5000 {
            let timer = CoreTimer.timer(Int64.random(in: 0..<40, using: &generator))
            let time = now + Int64.random(in: -5..<100, using: &generator)
            switch Int.random(in: 0..<6, using: &generator) {
            case 0, 1:
                timers.set(timer, at: time)
                model.removeAll { $0.timer == timer }
                model.append((timer, time))
            case 2:
                timers.setEarlier(timer, at: time)
                if let index = model.firstIndex(where: { $0.timer == timer }) {
                    if model[index].time > time {
                        model.remove(at: index)
                        model.append((timer, time))
                    }
                } else {
                    model.append((timer, time))
                }
            case 3:
                timers.clear(timer)
                model.removeAll { $0.timer == timer }
            default:
                now += Int64.random(in: 0..<10, using: &generator)
                let due = model.enumerated().filter { $0.element.time <= now }
                    .sorted { ($0.element.time, $0.offset) < ($1.element.time, $1.offset) }.map(\.element.timer)
                model.removeAll { $0.time <= now }
                expect(&timers, at: now, fire: due)
            }
            #expect(timers.count == model.count && timers.next == model.map(\.time).min())
        }
    }

    @Test func memory_isBounded_whereTimersAreSetAgainAndAgain() throws {
        var timers = TimerQueue()
        timers.set(.due, at: 0)
        for time in 1...10_000 { timers.set(.deadline, at: Int64(time)) }
        let heap = Mirror(reflecting: timers).children.first { $0.label == "heap" }
        let count = try #require(heap.flatMap { Mirror(reflecting: $0.value).children.first })
        #expect(Mirror(reflecting: count.value).children.count <= 100)
    }
}
