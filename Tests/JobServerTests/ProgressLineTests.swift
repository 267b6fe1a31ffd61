import JobModel
import NIOCore
import Testing

@testable import JobCore
@testable import JobEngine
@testable import JobServer

/// Lines of progress and output that are written in chunks.
@Suite struct ProgressLineTests {
    @Test func linesOfOutput_goOn_whereTheChunkEnded() {
        var watch = OutboxWatch(1)
        watch.add(.progress(1...20, 7))
        watch.add(
            ProgressBatch((1...20).map { ProgressRow(job: $0, link: 0, news: .output(attempt: 1, size: $0)) }),
            isOutput: true)
        var text = ""
        var isWritten = false
        while !isWritten {
            var chunk = ByteBuffer()
            isWritten = watch.writeProgress(to: &chunk, limit: 300)
            #expect(isWritten == !watch.hasProgress)
            text += String(buffer: chunk)
        }
        let notices = text.split(separator: "\n").compactMap { Notice(String($0)) }
        #expect(notices.map(\.job) == Array(1...20) + Array(1...20))
        #expect(notices.suffix(20).map(\.value) == (1...20).map(String.init))
    }

    @Test func lines_goOn_whereTheChunkEnded() {
        var (whole, parts) = (OutboxWatch(1), OutboxWatch(1))
        let batch = ProgressBatch.progress(1...500, 7)
        var expected = ByteBuffer()
        whole.add(batch)
        #expect(whole.writeProgress(to: &expected, limit: .max))
        for limit in [1, 100, 1000, 100_000] {
            parts = OutboxWatch(1)
            parts.add(batch)
            var (all, isWritten) = (ByteBuffer(), false)
            while !isWritten {
                var chunk = ByteBuffer()
                isWritten = parts.writeProgress(to: &chunk, limit: limit)
                #expect(chunk.readableBytes > 0 && chunk.readableBytes < limit + 300)
                all.writeBuffer(&chunk)
            }
            #expect(all == expected)
        }
    }
}
