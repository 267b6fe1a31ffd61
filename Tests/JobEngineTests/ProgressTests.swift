import DeferredKit
import JobModel
import Testing

@testable import JobEngine

/// The notifications of progress that subscribers receive.
@Suite struct ProgressTests {
    private let board = Board()

    private func run(_ number: Int64 = 1) -> RunID { RunID(life: 1, number: number) }

    private func list(_ ended: Int, of job: JobID = 2, id: Int64 = 1) -> ListRow {
        var list = ListRow(
            job: job, id: id, link: 0, phase: .open, mode: .settled, concurrency: nil, total: 3, template: nil)
        list.ended = ended
        return list
    }

    @Test func news_haveOnlyWhatHasChanged() throws {
        board.hear(run(), of: 1)
        func present() -> JobProgress { board.reports(of: run(), of: 1) }
        func report(_ completed: Int64) {
            board.update(run(), of: 1) { $0.report(ProgressUpdate(completed: completed, total: 10)) }
        }
        #expect(present().news(since: nil) == nil)
        report(1)
        let first = present()
        #expect(first.news(since: nil)?.reports == 1)
        #expect(first.news(since: first) == nil)
        for completed in 2...4 { report(Int64(completed)) }
        let second = present()
        let news = try #require(second.news(since: first))
        #expect(news.latest?.completed == 4 && news.reports == 3 && news.output == nil)
        board.update(run(), of: 1) { $0.output = 5 }
        let third = present()
        let output = try #require(third.news(since: second))
        #expect(output.latest == nil && output.output == 5)
        // The end of the job tells it at once.
        report(10)
        #expect(present().news(since: third) == nil)
    }

    @Test func news_haveAll_whenAnotherRunBegins() {
        var (former, next) = (JobProgress(run: run()), JobProgress(run: run(2)))
        former.report(ProgressUpdate(completed: 1, total: 10))
        next.report(ProgressUpdate(completed: 1, total: 10))
        #expect(next.news(since: former)?.reports == 1)
    }

    @Test func reports_ofARunThatIsOver_changeNothing() {
        board.hear(run(2), of: 1)
        board.update(run(), of: 1) { $0.output = 5 }
        #expect(board.reports(of: run(2), of: 1).output == nil && board.reports(of: run(), of: 1).run == nil)
    }

    @Test func list_showsNoProgress_besideTenThousandOthers() {
        for job in 1...JobID(10_001) { board.put(list(1, of: job), of: job) }
        #expect(board.present().count == 10_000)
        board.put(nil, of: 1)
        board.put(list(2, of: 10_001), of: 10_001)
        #expect(board.present()[10_001]?.latest?.completed == 2)
    }

    @Test func list_hasNews_whenAChildHasEnded() {
        board.put(list(1), of: 2)
        let first = board.present()
        #expect(first[2]?.latest?.completed == 1)
        board.put(list(2), of: 2)
        #expect(board.present()[2]?.news(since: first[2])?.latest?.completed == 2)
        board.put(nil, of: 2)
        #expect(board.isEmpty && board.present().isEmpty)
    }

    @Test func heardRun_isForgotten_whenItsJobChanges() {
        board.hear(run(), of: 1)
        board.update(run(), of: 1) { $0.output = 5 }
        board.hear(run(), of: 1)
        #expect(board.present()[1]?.output == 5 && board.slots.isEmpty)
        #expect(board.present()[1]?.isOf(run()) == true && board.present()[1]?.isOf(run(2)) == false)
        board.forget([1], all: false)
        #expect(board.isEmpty)
    }

    @Test func heardList_isShown_unlessMoreOfItHasEnded() {
        board.put(list(1), of: 2)
        board.hear(list(2))
        board.hear(list(1))
        #expect(board.progress(of: 2, in: nil)?.completed == 2)
        board.hear(list(0, of: 3))
        board.forget([], all: true)
        #expect(board.progress(of: 2, in: nil)?.completed == 2 && board.progress(of: 3, in: nil) == nil)
    }
}
