import JobModel
import JobProtocol
import NIOCore
import Testing

@testable import JobCore
@testable import JobEngine
@testable import JobServer

/// Lines of progress and output that are written in chunks.
@Suite struct ProgressLineTests {
    @Test func linesOfOutput_followThoseOfProgress_whereAChunkEnds() {
        let outbox = Outbox(limit: 1 << 20) {}
        let watch = outbox.watch(1)
        watch.receive(.progress(1...20, 7))
        watch.receive(
            ProgressBatch((1...20).map { ProgressRow(job: $0, link: 0, news: .output(attempt: 1, size: $0)) }))
        for written in 1...100 {
            let before = outbox.backlog
            watch.writeProgress(atMost: 300)
            guard outbox.backlog > before else {
                #expect(written > 10)
                break
            }
        }
        let notices = outbox.allLines().compactMap(Notice.init)
        #expect(notices.map(\.job) == Array(1...20) + Array(1...20))
        #expect(notices.suffix(20).map(\.value) == (1...20).map(String.init))
    }

    @Test func lines_goOn_whereTheChunkEnded() {
        let batch = ProgressBatch.progress(1...500, 7)
        func lines(limit: Int) -> ByteBuffer {
            var (waiting, numbers) = (WaitingBatch(watch: "w1"), [JobID: Int]())
            waiting.add(batch)
            var all = ByteBuffer()
            while !waiting.isEmpty {
                var chunk = ByteBuffer()
                waiting.write(to: &chunk, limit: limit, &numbers)
                #expect(chunk.readableBytes > 0 && chunk.readableBytes - 300 < limit)
                all.writeBuffer(&chunk)
            }
            return all
        }
        for limit in [1, 100, 1000, 100_000] { #expect(lines(limit: limit) == lines(limit: .max)) }
    }
}
