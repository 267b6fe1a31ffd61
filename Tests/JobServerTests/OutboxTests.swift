import JobModel
import JobProtocol
import NIOCore
import NIOEmbedded
import Testing

@testable import JobCore
@testable import JobEngine
@testable import JobServer

@Suite struct OutboxTests {
    /// A client that reads all but a little must not keep the memory of all.
    @Test func chunk_keepsNoMoreMemoryThanItsBytes() {
        let outbox = Outbox(limit: 1 << 30) {}
        outbox.send(answer: [UInt8](repeating: 32, count: 20 * Outbox.chunk))
        var chunks = 0
        while let chunk = outbox.next() {
            #expect(chunk.storageCapacity <= 2 * Outbox.chunk)
            chunks += 1
        }
        #expect(chunks == 21)
    }

    /// An outbox, and how often it overflowed.
    private func outbox(limit: Int = 1 << 20) -> (Outbox, overflows: () -> Int) {
        let count = Count()
        return (Outbox(limit: limit) { count.add() }, { count.now })
    }

    private func send(_ text: String, to outbox: Outbox) { outbox.send(answer: Array(text.utf8)) }

    // MARK: - Order

    @Test func lines_comeInTheOrderTheyWereSent() async {
        let (outbox, _) = outbox()
        let w1 = outbox.watch(1)
        send("1", to: outbox)
        outbox.send(answer: Array("2\n3".utf8))
        w1.receive(.state(7, .queued))
        send("5", to: outbox)
        w1.receive(.state(7, .running))
        let lines = outbox.nextLines() ?? []
        #expect(lines.count == 6 && Array(lines[..<3]) == ["1", "2", "3"] && lines[4] == "5")
        #expect([lines[3], lines[5]].compactMap(Notice.init).map(\.value) == ["queued", "running"])
    }

    @Test func lines_comeInBoundedPieces_thatGiveBackWhatTheyTook() async {
        let (outbox, overflows) = outbox(limit: 16 << 20)
        let long = (0..<300_000).map(String.init).joined(separator: ",")
        let lines = ["1", long] + Array(repeating: String(repeating: "x", count: 10_000), count: 200)
        for line in lines { send(line, to: outbox) }
        let expected = lines.joined(separator: "\n") + "\n"
        var all = ""
        while let piece = outbox.next() {
            #expect(piece.readableBytes <= Outbox.chunk)
            #expect(outbox.backlog == expected.utf8.count - all.utf8.count)
            all += String(buffer: piece)
            outbox.sent(piece.readableBytes)
        }
        #expect(all == expected && outbox.backlog == 0 && overflows() == 0)
    }

    @Test func socket_isWokenOnce_untilWhatWaitsIsWritten() throws {
        let wakes = Count()
        let outbox = Outbox(limit: 1 << 20, wake: { _ in wakes.add() }, overflowed: {})
        for number in 0..<3 { send("\(number)", to: outbox) }
        #expect(wakes.now == 1)
        let channel = EmbeddedChannel()
        outbox.write(to: channel)
        #expect(try channel.readOutbound(as: ByteBuffer.self).map { String(buffer: $0) } == "0\n1\n2\n")
        outbox.send(answer: Array("3".utf8))
        #expect(wakes.now == 2)
    }

    @Test func outbox_isEmpty_onceAllIsSent() {
        let drained = Count()
        let outbox = Outbox(limit: 1 << 20, drained: { drained.add() }) {}
        send("a", to: outbox)
        outbox.watch(1).receive(.progress(7, 1))
        #expect(!outbox.isEmpty && drained.now == 0)
        #expect(outbox.nextLines()?.count == 2, "progress is sent, too")
        #expect(outbox.isEmpty && drained.now == 1)
    }

    @Test func lines_areNeitherLostNorDoubled_whoeverSendsThem() async {
        let (outbox, overflows) = outbox(limit: 64 << 20)
        let w1 = outbox.watch(1)
        await withTaskGroup { group in
            for sender in 0..<8 {
                group.addTask {
                    for number in 0..<500 {
                        if number % 2 == 0 {
                            w1.receive(.state(JobID(sender), label: "\(number)"))
                        } else {
                            send("\(sender) \(number)", to: outbox)
                        }
                    }
                }
            }
        }
        var seen: [Int: [Int]] = [:]
        for line in outbox.allLines() {
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
        let w1 = outbox.watch(1)
        w1.receive(.progress(7, 1, coalesced: 2))
        w1.receive(.progress(7, 2))
        w1.receive(.progress(7, 3, coalesced: 1))
        let notices = outbox.nextLines()?.compactMap(Notice.init) ?? []
        #expect(notices.map(\.value) == ["3"], "the latest wins")
        #expect(notices.map(\.coalesced) == [5], "what was merged before and two more")
        w1.receive(.progress(7, 4))
        let next = outbox.nextLines()?.compactMap(Notice.init) ?? []
        #expect(next.map(\.coalesced) == [0] && next.map(\.seq) == [2])
    }

    @Test func progress_waits_untilNothingElseDoes() async {
        let (outbox, _) = outbox()
        let w1 = outbox.watch(1)
        w1.receive(.progress(7, 1))
        w1.receive(.state(8, .running))
        send("answer", to: outbox)
        let lines = outbox.nextLines() ?? []
        #expect(lines.count == 3 && lines[1] == "answer" && Notice(lines[2])?.value == "1")
    }

    @Test func progressOfManyJobs_isALineForEach_andMergedByJob() async {
        let (outbox, _) = outbox()
        let w1 = outbox.watch(1)
        w1.receive(.progress([2, 4, 6], 1))
        w1.receive(.progress([1, 4, 7], 2, coalesced: 1))
        w1.receive(.progress([4], 3))
        let notices = outbox.nextLines()?.compactMap(Notice.init) ?? []
        #expect(notices.map(\.job) == [1, 2, 4, 6, 7])
        #expect(notices.map(\.value) == ["2", "1", "3", "1", "2"])
        #expect(notices.map(\.coalesced) == [1, 0, 3, 0, 1])
    }

    private struct Key: Hashable {
        let watch: String
        let job: Int
    }

    /// Some jobs of two watches, as one reader sees them that comes now and then.
    @Test func everything_isToldInOrder_whateverComesTogether() async throws {
        var generator = SystemRandomNumberGenerator()
        for round in 0..<20 {
            let (outbox, _) = outbox(limit: 1 << 30)
            let (w1, w2) = (outbox.watch(1), outbox.watch(2))
            // In the first round so many that they do not go into one piece.
            let jobs = Array(1...(round == 0 ? 3000 : 5) as ClosedRange<JobID>)
            // What was sent of each job: its states, and between them all progress.
            var sent: [Key: [(state: String?, progress: [Int64])]] = [:]
            var notices: [Notice] = []
            for step in 1...(round == 0 ? 40 : 300) {
                let watch = Bool.random(using: &generator) ? w1 : w2
                switch Int.random(in: 0..<(round % 3 == 1 ? 40 : 8), using: &generator) {
                case 0:
                    // So that there is something.
                    send("answer", to: outbox)
                    notices += outbox.nextLines()?.compactMap(Notice.init) ?? []
                case 1, 2:
                    let job = try #require(jobs.randomElement(using: &generator))
                    watch.receive(.state(job, label: "\(step)"))
                    sent[Key(watch: watch.name, job: Int(job)), default: []].append(("\(step)", []))
                default:
                    let some = jobs.filter { _ in Bool.random(using: &generator) }
                    watch.receive(.progress(some, Int64(step), coalesced: step % 3))
                    for job in some {
                        let key = Key(watch: watch.name, job: Int(job))
                        if sent[key]?.last == nil { sent[key] = [(nil, [])] }
                        let last = (sent[key]?.count ?? 1) - 1
                        sent[key]?[last].progress.append(Int64(step))
                    }
                }
            }
            notices += outbox.allLines().compactMap(Notice.init)
            let told = Dictionary(grouping: notices) { Key(watch: $0.watch, job: $0.job) }
            #expect(Set(told.keys) == Set(sent.keys))
            for (key, notices) in told {
                #expect(notices.map(\.seq) == Array(1...notices.count))
                var sent = (sent[key] ?? [])[...]
                var last: Int64 = 0
                for notice in notices {
                    if notice.method == "job.state" {
                        if sent.first?.state != notice.label { sent.removeFirst() }
                        #expect(sent.first?.state == notice.label)
                        last = 0
                    } else {
                        let value = try #require(Int64(notice.value))
                        #expect(value > last && sent.first?.progress.contains(value) == true)
                        last = value
                    }
                }
                // The latest progress is told, unless a state came after it.
                #expect(sent.count == 1 && last == sent.first?.progress.last ?? 0, "\(key)")
            }
        }
    }

    @Test func progress_takesRoomByJobs_howeverSlowTheClientIs() async {
        let (outbox, overflows) = outbox(limit: 100)
        let w1 = outbox.watch(1)
        for number in 1...2000 { w1.receive(.progress(1...50, Int64(number))) }
        let notices = outbox.nextLines()?.compactMap(Notice.init) ?? []
        #expect(notices.map(\.job) == Array(1...50) && notices.allSatisfy { $0.value == "2000" })
        #expect(notices.allSatisfy { $0.coalesced == 1999 } && overflows() == 0)
    }

    @Test func nothingOfAJob_followsItsEnd() async {
        let (outbox, _) = outbox()
        let w1 = outbox.watch(1)
        w1.receive(.progress(7, 1))
        w1.receive(.state(7, .running))
        w1.receive(.progress(7, 2))
        w1.receive(.state(7, .succeeded))
        let notices = outbox.nextLines()?.compactMap(Notice.init) ?? []
        #expect(notices.last?.value == "succeeded")
        #expect(notices.map(\.seq) == Array(1...notices.count))
    }

    // MARK: - Output

    @Test func output_isMerged_whileItWaits() async {
        let (outbox, overflows) = outbox(limit: 100)
        let (w1, w2) = (outbox.watch(1), outbox.watch(2))
        for number in 1...1000 { w1.receive(.output(7, 9, size: Int64(number))) }
        w1.receive(.output(7, size: 2000))
        w2.receive(.output(7, size: 5))
        let notices = outbox.nextLines()?.compactMap(Notice.init) ?? []
        #expect(notices.map { "\($0.watch) \($0.job) \($0.value)" } == ["w1 7 2000", "w1 9 1000", "w2 7 5"])
        #expect(notices.allSatisfy { $0.method == "job.output" && $0.seq == 0 } && overflows() == 0)
    }

    @Test func output_doesNotReplaceProgress_andHasNoNumber() async {
        let (outbox, _) = outbox()
        let w1 = outbox.watch(1)
        w1.receive(.progress(7, 1))
        w1.receive(.output(7, size: 10))
        w1.receive(.progress(7, 2))
        let notices = outbox.nextLines()?.compactMap(Notice.init) ?? []
        #expect(notices.map(\.method) == ["job.progress", "job.output"])
        #expect(notices.map(\.value) == ["2", "10"] && notices.map(\.seq) == [1, 0])
    }

    @Test func output_outlastsAState_butNotTheEnd() async {
        let (outbox, _) = outbox()
        let w1 = outbox.watch(1)
        w1.receive(.output(7, 8, size: 10))
        w1.receive(.state(7, label: "the next link"))
        w1.receive(.state(8, .failed))
        let notices = outbox.nextLines()?.compactMap(Notice.init) ?? []
        #expect(notices.map { "\($0.job) \($0.value)" } == ["7 running", "8 failed", "7 10"])
    }

    // MARK: - Numbers

    @Test func seq_grows_byWatchAndJob() async {
        let (outbox, _) = outbox()
        let (w1, w2) = (outbox.watch(1), outbox.watch(2))
        w1.receive(.state(7))
        w1.receive(.progress(7, 1))
        w2.receive(.state(7))
        w1.receive(.state(8))
        _ = outbox.next()
        w1.receive(.state(8))
        w1.receive(.state(7))
        w1.receive(.progress(7, 2))
        let notices = outbox.nextLines()?.compactMap(Notice.init) ?? []
        #expect(notices.map(\.seq) == [2, 3, 4])
    }

    @Test func seq_beginsAnew_onceAWatchHasEnded() async {
        let (outbox, _) = outbox()
        let w1 = outbox.watch(1)
        w1.receive(.state(7))
        w1.receive(.progress(7, 1))
        w1.end()
        send("answer", to: outbox)
        let lines = outbox.nextLines() ?? []
        #expect(lines.count == 2 && lines.last == "answer" && Notice(lines[0])?.seq == 1)
        outbox.watch(1).receive(.progress(7, 1))
        #expect(outbox.nextLines()?.compactMap(Notice.init).map(\.seq) == [1])
    }

    // MARK: - Ends

    @Test func overflow_closesOnce_andDropsWhatWaits() async {
        let (outbox, overflows) = outbox(limit: 100)
        let w1 = outbox.watch(1)
        send(String(repeating: "x", count: 99), to: outbox)
        #expect(overflows() == 0, "exactly the limit fits, its line end included")
        #expect(!outbox.isClosed)
        send("", to: outbox)
        #expect(overflows() == 1 && outbox.isClosed)
        for _ in 0..<10 { send("more", to: outbox) }
        w1.receive(.progress(7, 1))
        w1.receive(.state(7))
        #expect(overflows() == 1)
        #expect(outbox.next() == nil)
    }

    @Test func room_isFreed_byReading() async {
        let (outbox, overflows) = outbox(limit: 1000)
        let w1 = outbox.watch(1)
        for round in 0..<50 {
            send(String(repeating: "x", count: 500), to: outbox)
            w1.receive(.state(7, label: "\(round)"))
            w1.receive(.progress(7, 1))
            #expect(outbox.nextLines()?.count == 3)
        }
        #expect(overflows() == 0)
    }

    @Test func close_dropsWhatWaits() {
        let (outbox, overflows) = outbox()
        send("a", to: outbox)
        outbox.watch(1).receive(.progress(7, 1))
        outbox.close()
        #expect(outbox.isEmpty)
        send("b", to: outbox)
        #expect(outbox.next() == nil)
        outbox.close()
        #expect(overflows() == 0, "a close is no overflow")
    }
}
