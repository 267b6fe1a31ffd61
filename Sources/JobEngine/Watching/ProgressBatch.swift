package import JobModel
import Synchronization

/// The progress of many jobs, and the output of their programs, shared by all subscribers that get the same rows.
package final class ProgressBatch: Sendable {
    /// The texts of all rows, one after the other; the offset of each, and of the end.
    package typealias Text = (bytes: [UInt8], offsets: [Int])

    /// One row for each job with progress, then one for each with output, by id.
    package let rows: [ProgressRow]
    private let text = Mutex<Text?>(nil)

    init(_ rows: [ProgressRow]) {
        self.rows = rows.sorted { ($0.isOutput ? 1 : 0, $0.job) < ($1.isOutput ? 1 : 0, $1.job) }
    }

    /// The text of the batch, which the first caller writes for all others.
    package func text(_ write: (ProgressRow, inout JSONWriter) -> Void) -> Text {
        text.withLock { text in
            if let text { return text }
            var writer = JSONWriter(reservingCapacity: rows.count * 160)
            var offsets = [0]
            for row in rows {
                write(row, &writer)
                offsets.append(writer.bytes.count)
            }
            text = (writer.bytes, offsets)
            return (writer.bytes, offsets)
        }
    }

    /// The rows from index `start` on except `replaced` ones, merged with a newer batch: the latest row of each job and
    /// kind.
    package func merged(from start: Int, without replaced: Set<Int>, with newer: ProgressBatch) -> ProgressBatch {
        var latest: [Int64: ProgressRow] = [:]
        for index in start..<rows.count where !replaced.contains(index) { latest[rows[index].key] = rows[index] }
        for var row in newer.rows {
            if let old = latest[row.key] { row.merge(old) }
            latest[row.key] = row
        }
        return ProgressBatch(Array(latest.values))
    }
}

/// The news of one job's run: its progress, or the output of its program.
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

    package var isOutput: Bool { if case .output = news { true } else { false } }

    /// Different for each row of a batch, as ids of jobs are positive. No damaged id overflows.
    fileprivate var key: Int64 { isOutput ? ~job : job }

    /// Counts an earlier row of the job, which this one replaces.
    fileprivate mutating func merge(_ earlier: ProgressRow) {
        guard case .progress(let progress, let links, let coalesced) = news,
            case .progress(_, _, let before) = earlier.news
        else { return }
        news = .progress(progress, links: links, coalesced: coalesced + before + 1)
    }
}
