import JobModel
import MallocCounter
import NIOCore
import Testing

@testable import JobCore
@testable import JobEngine
@testable import JobServer

/// The lines of progress: there are very many of them, so what one costs is guarded, without a clock.
@Suite struct ProgressLineTests {
    /// How many blocks of memory the lines of a batch take, once their watch has told of its jobs.
    private func blocks(_ jobs: Int) -> Int {
        var watch = OutboxWatch(1)
        let batch = ProgressBatch.progress(1...JobID(jobs), 1_000_000)
        var buffer = ByteBufferAllocator().buffer(capacity: jobs * 512)
        var blocks = 0
        for _ in 0..<3 {
            buffer.clear()
            let before = test_malloc_count()
            watch.add(batch)
            let isWritten = watch.writeProgress(to: &buffer, limit: .max)
            blocks = test_malloc_count() - before
            #expect(isWritten && buffer.readableBytes > jobs * 100)
        }
        return blocks
    }

    @Test func lines_allocateNothing_whereTheirJobsAreKnown() {
        let before = test_malloc_count()
        withExtendedLifetime([UInt8](repeating: 0, count: Int.random(in: 1...10))) {}
        #expect(test_malloc_count() > before, "something is counted")
        #expect(blocks(1000) == blocks(10))
    }

    @Test func text_isWrittenOnce_whoeverAsks() {
        let batch = ProgressBatch.progress(1...10, 5)
        func place() -> UnsafeRawPointer? { batch.text.bytes.withUnsafeBytes { $0.baseAddress } }
        #expect(place() == place())
    }

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
