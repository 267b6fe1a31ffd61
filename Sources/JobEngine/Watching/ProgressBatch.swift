package import JobModel
import Synchronization

/// The progress of many jobs, shared by all subscribers that get the same rows.
package final class ProgressBatch: Sendable {
    package typealias Row = ProgressRow

    /// The texts of all rows, one behind the other.
    package struct Text: Sendable {
        package struct Line: Sendable {
            package let job: JobID
            /// Where its text ends.
            package let end: Int

            package init(job: JobID, end: Int) {
                self.job = job
                self.end = end
            }
        }

        package let bytes: [UInt8]
        package let lines: [Line]

        package init(bytes: [UInt8], lines: [Line]) {
            self.bytes = bytes
            self.lines = lines
        }
    }

    /// By ascending id of the job, each job once.
    package let rows: [Row]
    private let text = Mutex<Text?>(nil)

    /// `rows` are in order already.
    init(_ rows: [Row]) {
        self.rows = rows
    }

    /// The batch as text, written by the first who asks and shared by all.
    package func text(_ write: ([Row]) -> Text) -> Text {
        text.withLock { text in
            if let text { return text }
            let written = write(rows)
            text = written
            return written
        }
    }

    /// The batch merged with a `newer` one: of each job the newer row counts, and says how many it replaced.
    package func merged(with newer: ProgressBatch) -> ProgressBatch {
        var merged: [Row] = []
        merged.reserveCapacity(max(rows.count, newer.rows.count))
        var earlier = rows[...]
        for var row in newer.rows {
            let end = earlier.firstIndex { $0.job >= row.job } ?? earlier.endIndex
            merged += earlier[..<end]
            earlier = earlier[end...]
            if let old = earlier.first, old.job == row.job {
                row.coalesced += old.coalesced + 1
                earlier = earlier.dropFirst()
            }
            merged.append(row)
        }
        merged += earlier
        return ProgressBatch(merged)
    }

    /// A batch for each key, of the rows that have it.
    package func parts<Key: Hashable>(by key: (Row) -> Key) -> [Key: ProgressBatch] {
        Dictionary(grouping: rows, by: key).mapValues(ProgressBatch.init)
    }
}

/// How far one job has come.
package struct ProgressRow: Sendable {
    package let job: JobID
    package let link: Int
    package let links: Int
    package let progress: Progress
    /// Reports that were merged into this one.
    package var coalesced: Int

    package init(job: JobID, link: Int, links: Int, _ progress: Progress, coalesced: Int) {
        self.job = job
        self.link = link
        self.links = links
        self.progress = progress
        self.coalesced = coalesced
    }
}
