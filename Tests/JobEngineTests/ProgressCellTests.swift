import JobModel
import Synchronization
import Testing

@testable import JobEngine

@Suite struct ProgressCellTests {
    private final class Count: Sendable {
        let value = Mutex(0)
        var now: Int { value.withLock(\.self) }
    }

    private func cell() -> (ProgressCell, Count) {
        let count = Count()
        return (ProgressCell { count.value.withLock { $0 += 1 } }, count)
    }

    private func report(_ completed: Int64, to cell: ProgressCell) {
        cell.report(Progress(completed: completed, total: 100))
    }

    @Test func reports_areAnnouncedOnce_untilSomebodyLooks() {
        let (cell, announced) = cell()
        cell.setWatched(true)
        for completed in 1...5 { report(Int64(completed), to: cell) }
        #expect(announced.now == 1)
        let taken = cell.take(every: 250)
        #expect(taken?.progress.completed == 5 && taken?.progress.total == 100 && taken?.updates == 5)
        report(6, to: cell)
        #expect(announced.now == 2)
        #expect(cell.take(every: 250)?.updates == 1)
        #expect(cell.take(every: 250)?.updates == 0)
    }

    @Test func reports_areCounted_forEachInterval() {
        let (cell, _) = cell()
        report(1, to: cell)
        report(2, to: cell)
        #expect(cell.take(every: 250)?.updates == 2)
        report(3, to: cell)
        #expect(cell.take(every: 250)?.updates == 1 && cell.take(every: 1000)?.updates == 3)
        report(4, to: cell)
        #expect(cell.take(every: 1000)?.updates == 1 && cell.take(every: 250)?.updates == 1)
        cell.reset()
        report(1, to: cell)
        #expect(cell.take(every: 1000)?.updates == 1)
        for interval in 2000..<3000 { _ = cell.take(every: interval) }
        #expect(cell.take(every: 1000)?.updates == 1, "what is remembered is bounded")
    }

    @Test func reports_areNotAnnounced_whereNobodyWatches() {
        let (cell, announced) = cell()
        #expect(cell.latest == nil && cell.take(every: 250) == nil)
        report(1, to: cell)
        #expect(announced.now == 0 && cell.latest?.completed == 1)
        cell.setWatched(true)
        report(2, to: cell)
        #expect(announced.now == 1)
        cell.setWatched(false)
        _ = cell.take(every: 250)
        report(3, to: cell)
        #expect(announced.now == 1 && cell.latest?.completed == 3)
    }

    @Test func looking_atTheLatest_takesNoNote() {
        let (cell, announced) = cell()
        cell.setWatched(true)
        report(1, to: cell)
        _ = cell.latest
        report(2, to: cell)
        #expect(announced.now == 1 && cell.take(every: 250)?.updates == 2)
    }

    @Test func rate_isNotKnown_beforeTwoMeasurements_norAfterAStepBack() {
        let (cell, _) = cell()
        report(50, to: cell)
        #expect(cell.latest?.rate == nil)
        report(10, to: cell)
        #expect(cell.latest?.rate == nil && cell.latest?.completed == 10)
    }

    @Test func reports_areAllCounted_whoeverMakesThem() async {
        let (cell, announced) = cell()
        cell.setWatched(true)
        await withTaskGroup { group in
            for _ in 0..<8 {
                group.addTask { for completed in 0..<500 { report(Int64(completed), to: cell) } }
            }
        }
        #expect(cell.take(every: 250)?.updates == 4000 && announced.now == 1)
    }
}
