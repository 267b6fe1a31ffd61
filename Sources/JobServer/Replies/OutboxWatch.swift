import JobCore
import JobEngine
import JobModel
import JobProtocol
import NIOCore

/// What an outbox knows of one watch: how its lines begin, their numbers, and which of its progress still waits.
struct OutboxWatch {
    private let stateHead: NotificationHead
    private let progressHead: NotificationHead
    /// The number of the last notification of each job.
    private var numbers: [JobID: Int] = [:]
    /// The numbers of the entries that wait and are batches, none of which is partly sent.
    private var batches: [Int] = []
    /// The entry of the last state of each job that came while a batch waited.
    private var states: [JobID: Int] = [:]

    init(_ number: Int) {
        stateHead = NotificationHead(.state, watch: "w\(number)")
        progressHead = NotificationHead(.progress, watch: "w\(number)")
    }

    // MARK: - What waits

    /// A state waits as entry `number`.
    mutating func waits(_ event: JobEvent, as number: Int) {
        if !batches.isEmpty { states[event.job] = number }
    }

    /// Splits a batch into what is merged with one that waits, by its entry, and the rest, which is to wait as entry `next`.
    ///
    /// Progress is merged where it does not pass a state of its job. As that is the first such entry, there is no other
    /// progress of the job behind it.
    mutating func split(_ batch: ProgressBatch, next: Int) -> (merged: [Int: ProgressBatch], rest: ProgressBatch?) {
        if let oldest = batches.first, states.isEmpty { return ([oldest: batch], nil) }
        let (batches, states) = (batches, states)
        var parts =
            batches.isEmpty
            ? [next: batch]
            : batch.parts { row in
                batches.first { $0 > states[row.job] ?? -1 } ?? next
            }
        let rest = parts.removeValue(forKey: next)
        if rest != nil { self.batches.append(next) }
        return (parts, rest)
    }

    /// Entry `number` is being sent, so nothing is merged with it any more.
    mutating func leaves(_ number: Int) {
        guard batches.first == number else { return }
        batches.removeFirst()
        if batches.isEmpty { states = [:] }
    }

    // MARK: - Lines

    /// How many bytes the line of a state takes, about.
    static func size(of event: JobEvent) -> Int { event.body.count + 96 }

    mutating func write(_ event: JobEvent, to buffer: inout ByteBuffer) {
        let seq = nextNumber(of: event.job)
        if event.isLast { numbers[event.job] = nil }
        let body = event.body
        buffer.writeWithUnsafeMutableBytes(minimumWritableBytes: stateHead.room + body.count) { target in
            guard let start = target.baseAddress else { return 0 }
            return body.withUnsafeBytes { stateHead.write(job: event.job, seq: seq, body: $0, to: start) } - start
        }
    }

    /// Writes the lines of a batch from `row` on, until there are about `limit` bytes; gives the row that comes next.
    mutating func write(_ batch: ProgressBatch, from row: Int, to buffer: inout ByteBuffer, limit: Int) -> Int {
        let (text, head) = (batch.text, progressHead)
        var begin = row > 0 ? text.lines[row - 1].end : 0
        var (next, size) = (row, 0)
        while next < text.lines.count, next == row || size < limit {
            next += 1
            size = text.lines[next - 1].end - begin + (next - row) * head.room
        }
        buffer.writeWithUnsafeMutableBytes(minimumWritableBytes: size) { target in
            guard var position = target.baseAddress else { return 0 }
            text.bytes.withUnsafeBytes { bytes in
                for index in row..<next {
                    let line = text.lines[index]
                    let body = UnsafeRawBufferPointer(rebasing: bytes[begin..<line.end])
                    position = head.write(job: line.job, seq: nextNumber(of: line.job), body: body, to: position)
                    begin = line.end
                }
            }
            return target.baseAddress.map { position - $0 } ?? 0
        }
        return next
    }

    private mutating func nextNumber(of job: JobID) -> Int {
        let next = (numbers[job] ?? 0) + 1
        numbers[job] = next
        return next
    }
}

extension JobEvent {
    /// What all watchers share.
    var body: [UInt8] {
        text { snapshot in
            JobNotification.state(
                state, snapshot: snapshot.text(.brief, within: Answer.mostBytes - NotificationHead.most))
        }
    }
}

extension ProgressBatch {
    /// What all watchers share.
    var text: Text {
        text { rows in
            var writer = JSONWriter(reservingCapacity: rows.count * 160)
            let lines = rows.map { row in
                JobNotification.writeProgress(
                    link: row.link, links: row.links, row.progress, coalesced: row.coalesced, to: &writer)
                return Text.Line(job: row.job, end: writer.bytes.count)
            }
            return Text(bytes: writer.bytes, lines: lines)
        }
    }
}
