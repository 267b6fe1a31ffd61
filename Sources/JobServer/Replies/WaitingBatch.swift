import JobEngine
import JobModel
import JobProtocol
import NIOCore

/// The latest progress of jobs, and output of their programs, that waits until it is sent to one watch.
struct WaitingBatch {
    private let progressHead: JobNotification
    private let outputHead: JobNotification
    private var batch: ProgressBatch?
    /// The number of rows that are written already, and the indices of later ones that a state has replaced.
    private var written = 0
    private var replaced: Set<Int> = []

    init(watch: String) {
        progressHead = JobNotification(.progress, watch: watch)
        outputHead = JobNotification(.output, watch: watch)
    }

    var isEmpty: Bool { batch.map { $0.rows.count - written == replaced.count } ?? true }

    mutating func add(_ new: ProgressBatch) {
        batch = batch?.merged(from: written, without: replaced, with: new) ?? new
        (written, replaced) = (0, [])
    }

    /// Removes the progress of a job that a state replaces, and if it has ended also its output.
    mutating func remove(_ job: JobID, hasEnded: Bool) {
        guard let rows = batch?.rows else { return }
        for index in written..<rows.count where rows[index].job == job && (hasEnded || !rows[index].isOutput) {
            replaced.insert(index)
        }
    }

    /// Writes lines, about `limit` bytes at most. `numbers` has the number of the last line of each job; output has none.
    mutating func write(to buffer: inout ByteBuffer, limit: Int, _ numbers: inout [JobID: Int]) {
        guard let batch else { return }
        let text = batch.text { row, writer in
            switch row.news {
            case .progress(let progress, let links, let coalesced):
                JobNotification.writeProgress(
                    link: row.link, links: links, progress, coalesced: coalesced, to: &writer)
            case .output(let attempt, let size):
                JobNotification.writeOutput(link: row.link, attempt: attempt, size: size, to: &writer)
            }
        }
        var (end, size) = (written, 0)
        while end < batch.rows.count, end == written || size < limit {
            end += 1
            size = text.offsets[end] - text.offsets[written] + (end - written) * progressHead.room
        }
        // All at once: each access to the buffer alone would take as long as a line.
        buffer.writeWithUnsafeMutableBytes(minimumWritableBytes: size) { target in
            guard let first = target.baseAddress else { return 0 }
            return text.bytes.withUnsafeBytes { bytes in
                var position = first
                for index in written..<end {
                    if replaced.remove(index) != nil { continue }
                    let (job, isOutput) = (batch.rows[index].job, batch.rows[index].isOutput)
                    if !isOutput { numbers[job, default: 0] += 1 }
                    let body = UnsafeRawBufferPointer(rebasing: bytes[text.offsets[index]..<text.offsets[index + 1]])
                    position = (isOutput ? outputHead : progressHead).write(
                        job: job, seq: isOutput ? nil : numbers[job], body: body, to: position)
                }
                return position - first
            }
        }
        (written, self.batch) = (end, end == batch.rows.count ? nil : batch)
    }
}

extension ByteBuffer {
    /// Writes a notification, whose `body` includes the end of the line.
    mutating func writeLine(_ head: JobNotification, job: JobID, seq: Int?, body: ArraySlice<UInt8>) {
        writeWithUnsafeMutableBytes(minimumWritableBytes: head.room + body.count) { target in
            guard let start = target.baseAddress else { return 0 }
            return body.withUnsafeBytes { head.write(job: job, seq: seq, body: $0, to: start) } - start
        }
    }
}
