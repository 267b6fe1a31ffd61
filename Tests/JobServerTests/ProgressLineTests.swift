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
            let next = watch.write(batch, from: 0, to: &buffer, limit: .max)
            blocks = test_malloc_count() - before
            #expect(next == jobs && buffer.readableBytes > jobs * 100)
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

    @Test func lines_goOn_whereTheChunkEnded() {
        var (whole, parts) = (OutboxWatch(1), OutboxWatch(1))
        let batch = ProgressBatch.progress(1...500, 7)
        var expected = ByteBuffer()
        #expect(whole.write(batch, from: 0, to: &expected, limit: .max) == 500)
        for limit in [1, 100, 1000, 100_000] {
            parts = OutboxWatch(1)
            var (all, row) = (ByteBuffer(), 0)
            while row < 500 {
                var chunk = ByteBuffer()
                let next = parts.write(batch, from: row, to: &chunk, limit: limit)
                #expect(next > row && chunk.readableBytes < limit + 300)
                all.writeBuffer(&chunk)
                row = next
            }
            #expect(all == expected)
        }
    }
}
