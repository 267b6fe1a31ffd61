import DeferredKit
import JobModel
import Testing

@testable import JobEngine

/// The notifications of progress that subscribers receive.
@Suite struct ProgressTests {
    private let board = Board()

    private func run(_ number: Int64 = 1, of job: JobID = 1) -> RunProgress {
        RunProgress(of: job, RunID(life: 1, number: number), link: 0, attempt: 1, isProgram: true, on: board)
    }

    private func list(_ ended: Int, of job: JobID = 2, id: Int64 = 1) -> ListRow {
        var list = ListRow(
            job: job, id: id, link: 0, phase: .open, mode: .settled, concurrency: nil, total: 3, template: nil)
        list.ended = ended
        return list
    }

    @Test func news_haveOnlyWhatHasChanged() throws {
        let run = run()
        func present() -> JobProgress { JobProgress(run.snapshot.latest, run) }
        #expect(present().news(since: nil) == nil)
        run.report(ProgressUpdate(completed: 1, total: 10))
        let first = present()
        #expect(first.news(since: nil)?.reports == 1)
        #expect(first.news(since: first) == nil)
        for completed in 2...4 { run.report(ProgressUpdate(completed: Int64(completed), total: 10)) }
        let second = present()
        let news = try #require(second.news(since: first))
        #expect(news.progress?.completed == 4 && news.reports == 3 && news.output == nil)
        run.wrote(5)
        let third = present()
        let output = try #require(third.news(since: second))
        #expect(output.progress == nil && output.output == 5)
        // The end of the job tells it at once.
        run.report(ProgressUpdate(completed: 10, total: 10))
        #expect(present().news(since: third) == nil)
    }

    @Test func news_haveAll_whenAnotherRunBegins() {
        let (former, next) = (run(), run(2))
        for run in [former, next] { run.report(ProgressUpdate(completed: 1, total: 10)) }
        let told = JobProgress(former.snapshot.latest, former)
        #expect(JobProgress(next.snapshot.latest, next).news(since: told)?.reports == 1)
    }

    @Test func list_hasNews_whenAChildHasEnded() {
        board.put(list(1), of: 2)
        let (activity, first) = (board.activity, board.present())
        #expect(first[2]?.progress?.completed == 1 && !activity.hasRuns)
        board.put(list(2), of: 2)
        #expect(board.activity.listChanges != activity.listChanges)
        #expect(board.present()[2]?.news(since: first[2])?.progress?.completed == 2)
        board.put(nil, of: 2)
        #expect(board.present().isEmpty)
    }

    @Test func heardRun_isForgotten_whenItsJobChanges() {
        let run = board.elsewhere(run())
        #expect(board.elsewhere(self.run()) === run)
        #expect(board.program(of: 1) === run && board.slots.isEmpty)
        #expect(board.isAbout(run.run, of: 1) && !board.isAbout(RunID(life: 1, number: 2), of: 1))
        board.forget([1], all: false)
        #expect(board.program(of: 1) == nil)
    }

    @Test func heardList_isShown_unlessMoreOfItHasEnded() {
        board.put(list(1), of: 2)
        board.hear(list(2))
        board.hear(list(1))
        #expect(board.progress(of: 2)?.completed == 2)
        board.hear(list(0, of: 3))
        board.forget([], all: true)
        #expect(board.progress(of: 2)?.completed == 2 && board.progress(of: 3) == nil)
    }
}
