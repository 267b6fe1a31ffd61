import JobModel
import Testing

@testable import JobCore

@Suite struct WaitsTests {
    private func finish(_ id: JobID, of request: RequestID? = nil, in waits: inout Waits) -> [RequestID] {
        waits.finished(id, of: request).map(\.request)
    }

    @Test func wait_isOver_whenTheLastOfItsJobsIs() {
        var waits = Waits()
        waits.add(1, [7, 8, 7], .one)
        #expect(waits.all.contains(1) && waits.count == 1)
        for id in [9, 7, 7] as [JobID] {
            let over = finish(id, in: &waits)
            #expect(over.isEmpty && waits.all.contains(1))
        }
        let over = waits.finished(8)
        #expect(over.map(\.request) == [1] && over.first?.ids == [7, 8, 7], "in the order asked, doubles included")
        let again = finish(8, in: &waits)
        #expect(!waits.all.contains(1) && again.isEmpty)
    }

    @Test func waits_areSeparate() {
        var waits = Waits()
        waits.add(1, [7], .one)
        waits.add(2, [7, 8], .one)
        waits.add(3, [7], .two)
        #expect(waits.all == [1, 2, 3])
        let first = finish(7, in: &waits)
        #expect(first == [1, 3] && waits.all.contains(2))
        let second = finish(8, in: &waits)
        #expect(second == [2])
    }

    @Test func wait_isTold_ofWhatEndedBeforeItBegan() {
        var waits = Waits()
        waits.add(1, [7, 8], .one)
        waits.add(2, [7], .one)
        let before = finish(7, of: 1, in: &waits)
        #expect(before.isEmpty && waits.all.contains(2), "only the one that looked")
        let first = finish(8, in: &waits)
        let second = finish(7, in: &waits)
        let unknown = finish(7, of: 99, in: &waits)
        #expect(first == [1] && second == [2] && unknown.isEmpty)
    }

    @Test func wait_isGivenUp_once() {
        var waits = Waits()
        waits.add(1, [7, 8], .one)
        _ = waits.finished(7)
        let isRemoved = waits.remove(1)
        let again = waits.remove(1)
        #expect(isRemoved && !again && !waits.all.contains(1))
        let later = finish(8, in: &waits)
        #expect(later.isEmpty)
    }

    @Test func waits_takeNoRoom_onceTheyAreOver() {
        var waits = Waits()
        for id in 0..<100 as Range<JobID> {
            waits.add(id, [id, id + 1], .one)
            if id.isMultiple(of: 2) {
                _ = waits.finished(id, of: id)
                _ = waits.finished(id + 1, of: id)
            } else {
                waits.remove(id)
            }
        }
        let held = Mirror(reflecting: waits).children.map { Mirror(reflecting: $0.value).children.count }
        #expect(held.reduce(0, +) == 0)
    }
}
