import JobModel
import Testing

@testable import JobCore
@testable import JobEngine
@testable import JobServer

@Suite struct WatchTests {
    private func watch() -> (Watch, Outbox, settled: Count) {
        let (outbox, count) = (Outbox(limit: 1 << 30) {}, Count())
        return (Watch(number: 1, outbox: outbox, charge: .free) { _ in count.add() }, outbox, count)
    }

    private func labels(of outbox: Outbox) -> [String?] {
        return outbox.allLines().map { Notice($0)?.label ?? $0 }
    }

    @Test func events_areHeld_untilTheAnswerIsOnItsWay() async {
        let (watch, outbox, _) = watch()
        watch.receive(.state(7, label: "a"))
        watch.receive(.state(8, label: "b"))
        outbox.send(answer: Array("answer".utf8))
        watch.open(unfinished: [7])
        watch.receive(.state(7, label: "c"))
        #expect(labels(of: outbox) == ["answer", "a", "b", "c"])
    }

    @Test func whatTheAnswerTells_isNotToldAgain() async {
        let (watch, outbox, _) = watch()
        watch.receive(.state(7, label: "a", version: 2))
        watch.receive(.state(7, label: "b", version: 4))
        watch.open(unfinished: [7, 8], versions: [7: 3, 8: 5])
        for version in 4...6 { watch.receive(.state(8, label: "\(version)", version: Int64(version))) }
        #expect(labels(of: outbox) == ["b", "6"])
    }

    @Test func watch_settles_whenItsAnswerShowsAnEnd_andProgressCameBefore() {
        let (watch, outbox, settled) = watch()
        watch.receive(.progress(7, 1))
        watch.receive(.state(7, .succeeded, version: 2))
        watch.receive(.state(8, label: "a"))
        watch.open(unfinished: [8], versions: [7: 2])
        #expect(labels(of: outbox) == ["a"])
        watch.receive(.state(8, .succeeded))
        #expect(watch.isSettled && settled.now == 1)
    }

    @Test func jobsThatAreNotFinished_areCounted_andTheirConnectionEndsWhereTheyAreTooMany() async throws {
        let budget = UserBudget(limit: 20_000)
        let count = Count()
        let outbox = Outbox(limit: 1 << 30) { count.add() }
        let watch = Watch(number: 1, outbox: outbox, charge: try BudgetCharge(registering: 1, in: budget)) { _ in }
        watch.open(unfinished: Set((0..<200).map { JobID($0) }))
        #expect(budget.used > 200 * 16 && count.now == 0)
        for job in 200..<1000 { watch.receive(.state(JobID(job), label: "")) }
        #expect(count.now == 1 && budget.used < 20_000, "nothing is added once it is closed")
    }

    @Test func whatIsHeld_isCounted_andItsConnectionEndsWhereItIsTooMuch() async throws {
        let budget = UserBudget(limit: 1_000_000)
        let count = Count()
        let outbox = Outbox(limit: 1 << 30) { count.add() }
        let watch = Watch(number: 1, outbox: outbox, charge: try BudgetCharge(registering: 1, in: budget)) { _ in }
        let text = String(repeating: "x", count: 100)
        for _ in 0..<100 { watch.receive(.state(7, label: text)) }
        #expect(budget.used > 100 * 260 && count.now == 0)
        for _ in 0..<10_000 { watch.receive(.state(7, label: text)) }
        #expect(count.now == 1 && outbox.isClosed && budget.used < 2_000_000)
    }

    @Test func whatWasHeld_isCountedNoMore_onceItIsSent() async throws {
        let budget = UserBudget(limit: 10_000_000)
        let outbox = Outbox(limit: 1 << 30, budget: budget) {}
        let watch = Watch(number: 1, outbox: outbox, charge: try BudgetCharge(registering: 1, in: budget)) { _ in }
        let text = String(repeating: "x", count: 100)
        for _ in 0..<100 { watch.receive(.state(7, label: text)) }
        watch.open(unfinished: [7])
        #expect(outbox.allLines().count == 100)
        #expect(budget.used < 5000)
    }

    @Test func connection_ends_whenMoreIsHeldThanMayBeUnread() {
        let count = Count()
        let outbox = Outbox(limit: 10_000) { count.add() }
        let watch = Watch(number: 1, outbox: outbox, charge: .free) { _ in }
        let text = String(repeating: "x", count: 100)
        for _ in 0..<5 { watch.receive(.state(7, label: text)) }
        #expect(count.now == 0)
        for _ in 0..<50 { watch.receive(.state(7, label: text)) }
        #expect(count.now == 1 && outbox.isClosed)
    }

    @Test func progress_takesNoRoom_andOnlyTheLatestIsTold_onceTheWatchIsOpen() {
        let count = Count()
        let outbox = Outbox(limit: 1000) { count.add() }
        let watch = Watch(number: 1, outbox: outbox, charge: .free) { _ in }
        for bytes in 0..<1000 { watch.receive(.progress([7, 8], Int64(bytes))) }
        watch.receive(.state(7, label: "a"))
        watch.receive(.progress(7, 1000))
        watch.receive(.progress(9, 1))
        watch.receive(.state(9, .succeeded, version: 2))
        #expect(outbox.next() == nil && count.now == 0 && !outbox.isClosed)
        watch.open(unfinished: [7, 8], versions: [9: 2])
        let notices = outbox.allLines().compactMap(Notice.init)
        #expect(notices.map { "\($0.job) \($0.seq) \($0.value)" } == ["7 1 running", "7 2 1000", "8 1 999"])
        #expect(notices.map(\.coalesced) == [nil, 0, 999])
    }

    @Test func events_areNeitherLostNorReordered_whereItOpensMeanwhile() async {
        for round in 0..<200 {
            let (watch, outbox, settled) = watch()
            await withTaskGroup { group in
                // The engine tells of events one after the other.
                group.addTask {
                    for number in 0..<300 { watch.receive(.state(7, label: "\(number)")) }
                    watch.receive(.state(7, .succeeded, label: "end"))
                }
                group.addTask {
                    for _ in 0..<round { await Task.yield() }
                    watch.open(unfinished: [7])
                }
            }
            #expect(watch.isSettled && settled.now >= 1)
            let notices = outbox.allLines().compactMap(Notice.init)
            #expect(notices.map(\.label) == (0..<300).map { "\($0)" } + ["end"])
            #expect(notices.map(\.seq) == Array(1...301))
        }
    }

    @Test func lastEnd_isTold_andNothingFollowsIt_whereTheWatchEndsItself() {
        let ended = Count()
        let outbox = Outbox(limit: 1 << 30) {}
        let watch = Watch(number: 1, outbox: outbox, charge: .free) { watch in
            watch.end()
            ended.add()
        }
        watch.open(unfinished: [7, 8])
        watch.receive(.state(8, .failed, label: "a"))
        watch.receive(.state(7, .running, label: "b"))
        #expect(ended.now == 0)
        watch.receive(.state(7, .succeeded, label: "c"))
        #expect(ended.now == 1)
        #expect(labels(of: outbox) == ["a", "b", "c"])
    }

    // MARK: - When nothing is left to tell

    @Test func watch_isSettled_onceItsJobsAreOver() {
        let (watch, _, settled) = watch()
        #expect(!watch.isSettled, "its answer is still to come")
        watch.open(unfinished: [7, 8])
        #expect(!watch.isSettled && settled.now == 0)
        watch.receive(.state(7, .running))
        watch.receive(.state(7, .succeeded))
        watch.receive(.progress(8, 1))
        #expect(!watch.isSettled && settled.now == 0)
        watch.receive(.state(8, .cancelled))
        #expect(watch.isSettled && settled.now == 1)
    }

    @Test func watch_isSettled_byAnEndThatWasHeld() {
        for states in [[JobState.failed], [.running, .failed], [.queued, .running, .succeeded]] {
            let (watch, _, settled) = watch()
            for state in states { watch.receive(.state(7, state)) }
            #expect(settled.now == 0)
            watch.open(unfinished: [7])
            #expect(watch.isSettled && settled.now == 1)
        }
    }

    @Test func watch_isNotSettled_whileAJobRuns_thatTheAnswerHadNoRoomFor() {
        let (watch, _, settled) = watch()
        watch.open(unfinished: [7])
        watch.receive(.progress([7, 8], 1))
        watch.receive(.state(7, .succeeded))
        #expect(!watch.isSettled && settled.now == 0)
        watch.receive(.state(8, .succeeded))
        #expect(watch.isSettled && settled.now == 1)
    }

    @Test func watch_isNotSettled_byJobsThatCameSinceAndRun() {
        let (watch, _, settled) = watch()
        watch.open(unfinished: [])
        watch.receive(.state(9, .queued))
        #expect(!watch.isSettled)
        watch.receive(.state(9, .failed))
        #expect(watch.isSettled && settled.now == 2)
        // A job that is retried goes on.
        watch.receive(.state(9, .queued))
        #expect(!watch.isSettled)
    }
}
