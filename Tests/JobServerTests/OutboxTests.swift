import JobModel
import JobProtocol
import Synchronization
import Testing

@testable import JobEngine
@testable import JobServer

@Suite struct OutboxTests {
    /// An outbox, and how often it overflowed.
    private func outbox(limit: Int = 1 << 20) -> (Outbox, overflows: () -> Int) {
        final class Count: Sendable {
            let value = Mutex(0)
        }
        let count = Count()
        return (Outbox(limit: limit) { count.value.withLock { $0 += 1 } }, { count.value.withLock(\.self) })
    }

    private func send(_ text: String, to outbox: Outbox) { outbox.send(answer: Array(text.utf8)) }

    // MARK: - Order

    @Test func lines_comeInTheOrderTheyWereSent() async {
        let (outbox, _) = outbox()
        send("1", to: outbox)
        outbox.send(lines: Array("2\n3\n".utf8))
        outbox.send(.state(7, .queued), watch: "w1")
        send("5", to: outbox)
        outbox.send(.state(7, .running), watch: "w1")
        let lines = await outbox.nextLines() ?? []
        #expect(lines.count == 6 && Array(lines[..<3]) == ["1", "2", "3"] && lines[4] == "5")
        #expect([lines[3], lines[5]].compactMap(Notice.init).map(\.value) == ["queued", "running"])
    }

    @Test func next_waits_untilThereIsSomething() async {
        let (outbox, _) = outbox()
        async let first = outbox.nextLines()
        send("a", to: outbox)
        #expect(await first == ["a"])
        async let second = outbox.nextLines()
        outbox.send(.progress(7, 5), watch: "w1")
        #expect(await second?.compactMap(Notice.init).map(\.value) == ["5"])
        async let third = outbox.nextLines()
        outbox.finish()
        #expect(await third == nil)
    }

    @Test func lines_comeInBoundedPieces_eachOfWholeLines() async {
        let (outbox, overflows) = outbox(limit: 16 << 20)
        let line = String(repeating: "x", count: 10_000)
        for _ in 0..<200 { send(line, to: outbox) }
        outbox.finish()
        var count = 0
        while let piece = await outbox.next() {
            #expect(piece.count < Outbox.chunk + line.utf8.count + 1 && piece.count % (line.utf8.count + 1) == 0)
            count += piece.count / (line.utf8.count + 1)
        }
        #expect(count == 200 && overflows() == 0)
    }

    @Test func lines_areNeitherLostNorDoubled_whoeverSendsThem() async {
        let (outbox, overflows) = outbox(limit: 64 << 20)
        async let all = outbox.allLines()
        await withTaskGroup { group in
            for sender in 0..<8 {
                group.addTask {
                    for number in 0..<500 {
                        if number % 2 == 0 {
                            outbox.send(.state(JobID(sender), label: "\(number)"), watch: "w1")
                        } else {
                            send("\(sender) \(number)", to: outbox)
                        }
                    }
                }
            }
        }
        outbox.finish()
        var seen: [Int: [Int]] = [:]
        for line in await all {
            if let notice = Notice(line) {
                #expect(notice.seq == (notice.label.flatMap(Int.init) ?? 0) / 2 + 1)
                seen[notice.job, default: []].append(notice.label.flatMap(Int.init) ?? -1)
            } else {
                let words = line.split(separator: " ").compactMap { Int($0) }
                seen[words[0], default: []].append(words[1])
            }
        }
        #expect(seen.count == 8 && overflows() == 0)
        for numbers in seen.values { #expect(numbers == Array(0..<500)) }
    }

    // MARK: - Progress

    @Test func progress_isMerged_whileItWaits() async {
        let (outbox, _) = outbox()
        outbox.send(.progress(7, 1, coalesced: 2), watch: "w1")
        outbox.send(.progress(7, 2), watch: "w1")
        outbox.send(.progress(7, 3, coalesced: 1), watch: "w1")
        let notices = await outbox.nextLines()?.compactMap(Notice.init) ?? []
        #expect(notices.map(\.value) == ["3"], "the latest wins")
        #expect(notices.map(\.coalesced) == [5], "what was merged before and two more")
        outbox.send(.progress(7, 4), watch: "w1")
        let next = await outbox.nextLines()?.compactMap(Notice.init) ?? []
        #expect(next.map(\.coalesced) == [0] && next.map(\.seq) == [2])
    }

    @Test func progress_isMerged_onlyWithThatOfItsJobAndWatch() async {
        let (outbox, _) = outbox()
        for (watch, job) in [("w1", 7), ("w2", 7), ("w1", 8), ("w1", 7)] as [(String, JobID)] {
            outbox.send(.progress(job, job * 10), watch: watch)
        }
        let notices = await outbox.nextLines()?.compactMap(Notice.init) ?? []
        #expect(notices.map { "\($0.watch) \($0.job)" } == ["w1 7", "w2 7", "w1 8"])
        #expect(notices.map(\.coalesced) == [1, 0, 0])
    }

    @Test func progress_takesNoRoom_howeverMuchOfItComes() async {
        let (outbox, overflows) = outbox(limit: 100)
        for number in 0..<100_000 { outbox.send(.progress(7, Int64(number)), watch: "w1") }
        #expect(overflows() == 0)
        let notices = await outbox.nextLines()?.compactMap(Notice.init) ?? []
        #expect(notices.map(\.value) == ["99999"] && notices.map(\.coalesced) == [99_999])
    }

    @Test func state_isNeverMerged() async {
        let (outbox, _) = outbox()
        for number in 0..<50 { outbox.send(.state(7, label: "\(number)"), watch: "w1") }
        let notices = await outbox.nextLines()?.compactMap(Notice.init) ?? []
        #expect(notices.map(\.label) == (0..<50).map { "\($0)" })
        #expect(notices.map(\.seq) == Array(1...50) && notices.allSatisfy { $0.coalesced == nil })
    }

    @Test func nothingOfAJob_followsItsEnd() async {
        let (outbox, _) = outbox()
        outbox.send(.progress(7, 1), watch: "w1")
        outbox.send(.state(7, .running), watch: "w1")
        outbox.send(.progress(7, 2), watch: "w1")
        outbox.send(.state(7, .succeeded), watch: "w1")
        let notices = await outbox.nextLines()?.compactMap(Notice.init) ?? []
        #expect(notices.last?.value == "succeeded")
        #expect(notices.map(\.seq) == Array(1...notices.count))
    }

    @Test func progress_doesNotOvertakeAState() async {
        let (outbox, _) = outbox()
        outbox.send(.progress(7, 1), watch: "w1")
        outbox.send(.state(7, .running, label: "the next link"), watch: "w1")
        outbox.send(.progress(7, 2), watch: "w1")
        let notices = await outbox.nextLines()?.compactMap(Notice.init) ?? []
        #expect(notices.map(\.value) == ["1", "running", "2"])
    }

    // MARK: - Numbers

    @Test func seq_grows_byWatchAndJob() async {
        let (outbox, _) = outbox()
        outbox.send(.state(7), watch: "w1")
        outbox.send(.progress(7, 1), watch: "w1")
        outbox.send(.state(7), watch: "w2")
        outbox.send(.state(8), watch: "w1")
        _ = await outbox.next()
        outbox.send(.progress(7, 2), watch: "w1")
        outbox.send(.state(8), watch: "w1")
        outbox.send(.state(7), watch: "w1")
        let notices = await outbox.nextLines()?.compactMap(Notice.init) ?? []
        #expect(notices.map(\.seq) == [3, 2, 4])
    }

    // MARK: - Ends

    @Test func overflow_closesOnce_andDropsWhatWaits() async {
        let (outbox, overflows) = outbox(limit: 100)
        send(String(repeating: "x", count: 99), to: outbox)
        #expect(overflows() == 0, "exactly the limit fits, its line end included")
        send("", to: outbox)
        #expect(overflows() == 1)
        for _ in 0..<10 { send("more", to: outbox) }
        outbox.send(.progress(7, 1), watch: "w1")
        outbox.send(.state(7), watch: "w1")
        #expect(overflows() == 1)
        #expect(await outbox.next() == nil)
    }

    @Test func overflow_isOfEventsToo_andWakesTheReader() async {
        let (outbox, overflows) = outbox(limit: 50)
        async let end = outbox.next()
        outbox.send(.state(7), watch: "w1")
        // The reader may have come before it or after it.
        if overflows() == 0 { outbox.send(.state(7), watch: "w1") }
        #expect(await end == nil)
        #expect(overflows() == 1)
    }

    @Test func room_isFreed_byReading() async {
        let (outbox, overflows) = outbox(limit: 1000)
        for round in 0..<50 {
            send(String(repeating: "x", count: 500), to: outbox)
            outbox.send(.state(7, label: "\(round)"), watch: "w1")
            outbox.send(.progress(7, 1), watch: "w1")
            #expect(await outbox.nextLines()?.count == 3)
        }
        #expect(overflows() == 0)
    }

    @Test func finish_letsWhatWaitsBeSent_andTakesNothingMore() async {
        let (outbox, _) = outbox()
        send("a", to: outbox)
        outbox.send(.progress(7, 1), watch: "w1")
        outbox.finish()
        send("b", to: outbox)
        outbox.send(.progress(7, 2), watch: "w1")
        let lines = await outbox.allLines()
        #expect(lines.first == "a" && lines.count == 2 && Notice(lines[1])?.value == "1")
        #expect(await outbox.next() == nil)
    }

    @Test func close_dropsWhatWaits() async {
        for finishes in [false, true] {
            let (outbox, overflows) = outbox()
            send("a", to: outbox)
            if finishes { outbox.finish() }
            outbox.close()
            send("b", to: outbox)
            #expect(await outbox.next() == nil)
            outbox.finish()
            outbox.close()
            #expect(await outbox.next() == nil)
            #expect(overflows() == 0, "a close is no overflow")
        }
    }

    @Test func close_wakesTheReader() async {
        let (outbox, _) = outbox()
        async let end = outbox.next()
        outbox.close()
        #expect(await end == nil)
    }
}
