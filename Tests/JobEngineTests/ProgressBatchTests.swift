import JobModel
import Testing

@testable import JobCore
@testable import JobEngine

@Suite struct ProgressBatchTests {
    private func batch(_ jobs: [JobID: Int64], coalesced: Int = 0) -> ProgressBatch {
        ProgressBatch(
            jobs.sorted { $0.key < $1.key }.map { job, bytes in
                ProgressBatch.Row(
                    job: job, link: 0, links: 0, Progress(completed: bytes, total: nil), coalesced: coalesced)
            })
    }

    private func rows(of batch: ProgressBatch) -> [[Int64]] {
        batch.rows.map { [$0.job, $0.progress.completed, Int64($0.coalesced)] }
    }

    @Test func latest_wins_whereBatchesAreMerged() {
        let merged = batch([1: 10, 3: 30, 5: 50], coalesced: 2).merged(
            with: batch([2: 21, 3: 31, 6: 61], coalesced: 4))
        #expect(rows(of: merged) == [[1, 10, 2], [2, 21, 4], [3, 31, 7], [5, 50, 2], [6, 61, 4]])
        #expect(rows(of: batch([:]).merged(with: batch([1: 1]))) == [[1, 1, 0]])
        #expect(rows(of: batch([1: 1]).merged(with: batch([:]))) == [[1, 1, 0]])
    }

    @Test func parts_keepTheOrder() {
        let parts = batch([1: 1, 2: 2, 3: 3, 4: 4]).parts { $0.job % 2 }
        #expect(parts.mapValues { $0.rows.map(\.job) } == [0: [2, 4], 1: [1, 3]])
    }
}
