import JobModel
import Testing

@testable import JobEngine

@Suite struct JobWaitsTests {
    private let caller = Caller(uid: 1, isAdmin: false)

    private func add(_ ids: [JobID], to waits: inout JobWaits) -> Int { waits.add(ids, caller) { _ in } }

    @Test func wait_isOver_whenTheLastOfItsJobsIs() {
        var waits = JobWaits()
        let number = add([7, 8, 7], to: &waits)
        #expect(waits.isOpen(number))
        #expect(waits.ended(9).isEmpty && waits.ended(7).isEmpty && waits.isOpen(number))
        #expect(waits.ended(7).isEmpty)
        let over = waits.ended(8)
        #expect(over.map(\.number) == [number] && over.first?.ids == [7, 8, 7], "in the order asked, doubles included")
        #expect(!waits.isOpen(number) && waits.ended(8).isEmpty)
    }

    @Test func waits_areSeparate() {
        var waits = JobWaits()
        let (one, two, three) = (add([7], to: &waits), add([7, 8], to: &waits), add([7], to: &waits))
        #expect(Set([one, two, three]).count == 3)
        #expect(waits.ended(7).map(\.number).sorted() == [one, three].sorted())
        #expect(waits.isOpen(two))
        #expect(waits.ended(8).map(\.number) == [two])
    }

    @Test func wait_isTold_ofWhatEndedBeforeItBegan() {
        var waits = JobWaits()
        let (one, two) = (add([7, 8], to: &waits), add([7], to: &waits))
        #expect(waits.ended(7, of: one).isEmpty)
        #expect(waits.isOpen(two), "only the one that looked")
        #expect(waits.ended(8).map(\.number) == [one])
        #expect(waits.ended(7).map(\.number) == [two])
        #expect(waits.ended(7, of: 99).isEmpty)
    }

    @Test func wait_isGivenUp_once() {
        var waits = JobWaits()
        let number = add([7, 8], to: &waits)
        _ = waits.ended(7)
        #expect(waits.expired(number)?.ids == [7, 8])
        #expect(waits.expired(number) == nil && !waits.isOpen(number))
        #expect(waits.ended(8).isEmpty)
    }

    @Test func waits_takeNoRoom_onceTheyAreOver() {
        var waits = JobWaits()
        for id in 0..<100 {
            let number = add([JobID(id), JobID(id + 1)], to: &waits)
            if id % 2 == 0 {
                _ = waits.ended(JobID(id), of: number)
                _ = waits.ended(JobID(id + 1), of: number)
            } else {
                _ = waits.expired(number)
            }
        }
        let held = Mirror(reflecting: waits).children.map { Mirror(reflecting: $0.value).children.count }
        #expect(held.reduce(0, +) == 0)
    }
}
