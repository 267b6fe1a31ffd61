import JobCore
import JobEngine
import JobModel
import JobProtocol
import NIOCore

/// What an outbox knows of one watch: the start of its lines, their numbers, and the progress that waits.
///
/// Only the latest progress of each job waits. A later state of the job replaces it.
struct OutboxWatch {
    private let stateHead: NotificationHead
    private let progressHead: NotificationHead
    /// The number of each job's last notification.
    private var numbers: [JobID: Int] = [:]
    private var progress: ProgressBatch?
    /// Rows of `progress` that are sent already.
    private var sent = 0
    /// Jobs of `progress` whose state has changed since.
    private var replaced: Set<JobID> = []

    init(_ number: Int) {
        stateHead = NotificationHead(.state, watch: "w\(number)")
        progressHead = NotificationHead(.progress, watch: "w\(number)")
    }

    // MARK: - Progress

    /// Adds progress to what waits; returns true if none did.
    mutating func add(_ batch: ProgressBatch) -> Bool {
        defer { (sent, replaced) = (0, []) }
        guard let waiting = progress else {
            progress = batch
            return true
        }
        progress = waiting.merged(from: sent, without: replaced, with: batch)
        return false
    }

    /// Writes lines of the progress that waits, about `limit` bytes at most; returns true once none is left.
    mutating func writeProgress(to buffer: inout ByteBuffer, limit: Int) -> Bool {
        guard let batch = progress else { return true }
        let (text, head) = (batch.text, progressHead)
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
                    position = head.write(job: job, seq: nextNumber(of: job), body: body, to: position)
                }
            }
            return target.baseAddress.map { position - $0 } ?? 0
        }
        sent = next
        guard next == text.ends.count else { return false }
        progress = nil
        return true
    }

    // MARK: - States

    /// The approximate size of the line of a state in bytes.
    static func size(of event: JobEvent) -> Int { event.body.count + 96 }

    /// Writes the line of a state, which replaces the progress of its job.
    mutating func write(_ event: JobEvent, to buffer: inout ByteBuffer) {
        // States may go on without further progress, so only jobs of the batch are remembered.
        if progress?.hasRow(of: event.job) == true { replaced.insert(event.job) }
        let seq = nextNumber(of: event.job)
        if event.isLast { numbers[event.job] = nil }
        let body = event.body
        buffer.writeWithUnsafeMutableBytes(minimumWritableBytes: stateHead.room + body.count) { target in
            guard let start = target.baseAddress else { return 0 }
            return body.withUnsafeBytes { stateHead.write(job: event.job, seq: seq, body: $0, to: start) } - start
        }
    }

    private mutating func nextNumber(of job: JobID) -> Int {
        let next = (numbers[job] ?? 0) + 1
        numbers[job] = next
        return next
    }
}

extension JobEvent {
    /// The part of the line that all watches share.
    var body: [UInt8] {
        text { snapshot in
            JobNotification.state(
                state, snapshot: snapshot.text(.brief, within: Answer.mostBytes - NotificationHead.most))
        }
    }
}

extension ProgressBatch {
    /// The parts of the lines that all watches share.
    var text: Text {
        text { row, writer in
            JobNotification.writeProgress(
                link: row.link, links: row.links, row.progress, coalesced: row.coalesced, to: &writer)
        }
    }
}
