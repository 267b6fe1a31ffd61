import JobEngine
import JobModel
import JobProtocol
import NIOCore

/// The latest progress of jobs, or output of their programs, that waits until it is sent to one watch.
struct WaitingBatch {
    private let head: JobNotification
    /// Whether its lines have numbers.
    private let isNumbered: Bool
    private var batch: ProgressBatch?
    /// Rows that are sent already.
    private var sent = 0
    /// Jobs whose rows are not sent any more.
    private var replaced: Set<JobID> = []

    init(_ method: JobNotification.Method, watch: Int) {
        head = JobNotification(method, watch: "w\(watch)")
        isNumbered = method == .progress
    }

    var isEmpty: Bool { batch == nil }

    mutating func add(_ new: ProgressBatch) {
        batch = batch?.merged(from: sent, without: replaced, with: new) ?? new
        (sent, replaced) = (0, [])
    }

    mutating func remove(_ job: JobID) {
        if batch?.hasRow(of: job) == true { replaced.insert(job) }
    }

    /// Writes lines, about `limit` bytes at most; returns true once none is left. `numbers` has the number of the last line of
    /// each job.
    mutating func write(to buffer: inout ByteBuffer, limit: Int, _ numbers: inout [JobID: Int]) -> Bool {
        guard let batch else { return true }
        let text = batch.text { row, writer in
            switch row.news {
            case .progress(let progress, let links, let coalesced):
                JobNotification.writeProgress(
                    link: row.link, links: links, progress, coalesced: coalesced, to: &writer)
            case .output(let attempt, let size):
                JobNotification.writeOutput(link: row.link, attempt: attempt, size: size, to: &writer)
            }
        }
        var begin = sent > 0 ? text.ends[sent - 1] : 0
        var (next, size) = (sent, 0)
        while next < text.ends.count, next == sent || size < limit {
            next += 1
            size = text.ends[next - 1] - begin + (next - sent) * head.room
        }
        buffer.writeWithUnsafeMutableBytes(minimumWritableBytes: size) { target in
            guard var position = target.baseAddress else { return 0 }
            text.bytes.withUnsafeBytes { bytes in
                for index in sent..<next {
                    defer { begin = text.ends[index] }
                    let job = batch.rows[index].job
                    if !replaced.isEmpty, replaced.contains(job) { continue }
                    let body = UnsafeRawBufferPointer(rebasing: bytes[begin..<text.ends[index]])
                    if isNumbered { numbers[job, default: 0] += 1 }
                    position = head.write(job: job, seq: isNumbered ? numbers[job] : nil, body: body, to: position)
                }
            }
            return target.baseAddress.map { position - $0 } ?? 0
        }
        sent = next
        guard next == text.ends.count else { return false }
        self.batch = nil
        return true
    }
}
