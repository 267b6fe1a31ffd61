package import JobModel
import Synchronization

/// The progress of many jobs, or the output of their programs, shared by all subscribers that get the same rows.
package final class ProgressBatch: Sendable {
    /// The texts of all rows, one after the other, and the end of each.
    package typealias Text = (bytes: [UInt8], ends: [Int])

    /// One row for each job, by id.
    package let rows: [ProgressRow]
    private let text = Mutex<Text?>(nil)

    init(_ rows: [ProgressRow]) { self.rows = rows }

    package func hasRow(of job: JobID) -> Bool { rows.contains { $0.job == job } }

    /// The text of the batch, which the first caller writes for all others.
    package func text(_ write: (ProgressRow, inout JSONWriter) -> Void) -> Text {
        text.withLock { text in
            if let text { return text }
            var writer = JSONWriter(reservingCapacity: rows.count * 160)
            let ends = rows.map { row in
                write(row, &writer)
                return writer.bytes.count
            }
            let written = (writer.bytes, ends)
            text = written
            return written
        }
    }

    /// The rows from index `start` on except those of `jobs`, merged with a newer batch: the latest row of each job.
    package func merged(from start: Int, without jobs: Set<JobID>, with newer: ProgressBatch) -> ProgressBatch {
        var latest: [JobID: ProgressRow] = [:]
        for row in rows[start...] where !jobs.contains(row.job) { latest[row.job] = row }
        for var row in newer.rows {
            if let old = latest[row.job] { row.merge(old) }
            latest[row.job] = row
        }
        return ProgressBatch(latest.values.sorted { $0.job < $1.job })
    }
}

/// The news of one job's run.
package struct ProgressRow: Sendable {
    package enum News: Sendable {
        /// `coalesced` counts earlier reports that this one replaces.
        case progress(Progress, links: Int, coalesced: Int)
        /// A program has written `size` bytes.
        case output(attempt: Int, size: Int64)
    }

    package let job: JobID
    package let link: Int
    package private(set) var news: News

    /// Counts an earlier row of the job, which this one replaces.
    mutating func merge(_ earlier: ProgressRow) {
        guard case .progress(let progress, let links, let coalesced) = news,
            case .progress(_, _, let before) = earlier.news
        else { return }
        news = .progress(progress, links: links, coalesced: coalesced + before + 1)
    }
}
