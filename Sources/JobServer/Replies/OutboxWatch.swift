import JobCore
import JobEngine
import JobModel
import JobProtocol
import NIOCore

/// What an outbox knows of one watch: how its lines begin, their numbers, and which of its progress still waits.
struct OutboxWatch {
    private let stateHead: NotificationHead
    private let progressHead: NotificationHead
    private var numbers = SequenceNumbers()
    /// The indices, among the entries that wait, of batches that wait, none of which is partly sent.
    private var batches: [Int] = []
    /// The index of the last state of each job that came while a batch waited.
    private var states: [JobID: Int] = [:]

    init(_ number: Int) {
        stateHead = NotificationHead(.state, watch: "w\(number)")
        progressHead = NotificationHead(.progress, watch: "w\(number)")
    }

    // MARK: - What waits

    /// A state waits at `index`.
    mutating func waits(_ event: JobEvent, at index: Int) {
        if !batches.isEmpty { states[event.job] = index }
    }

    /// Splits a batch into what is merged with one that waits, by its index, and the rest, which is to wait at `end`.
    ///
    /// Progress is merged where it does not pass a state of its job. As that is the first such entry, there is no other
    /// progress of the job behind it.
    mutating func split(_ batch: ProgressBatch, end: Int) -> (merged: [Int: ProgressBatch], rest: ProgressBatch?) {
        guard let oldest = batches.first else {
            batches = [end]
            return ([:], batch)
        }
        if states.isEmpty { return ([oldest: batch], nil) }
        let (batches, states) = (batches, states)
        var parts = batch.parts { row in
            let state = states[row.job] ?? -1
            return batches.first { $0 > state } ?? end
        }
        let rest = parts.removeValue(forKey: end)
        if rest != nil { self.batches.append(end) }
        return (parts, rest)
    }

    /// The batch at `index` is being sent, so nothing is merged with it any more.
    mutating func leaves(_ index: Int) {
        guard batches.first == index else { return }
        batches.removeFirst()
        if batches.isEmpty { states = [:] }
    }

    /// The entries were moved to the front by so many.
    mutating func shift(by distance: Int) {
        for index in batches.indices { batches[index] -= distance }
        states = states.filter { $0.value >= distance }.mapValues { $0 - distance }
    }

    // MARK: - Lines

    /// How many bytes the line of a state takes, about.
    static func size(of event: JobEvent) -> Int { event.body.count + 96 }

    mutating func write(_ event: JobEvent, to buffer: inout ByteBuffer) {
        let seq = numbers.next(for: event.job)
        if event.isLast { numbers.forget(event.job) }
        let body = event.body
        buffer.writeWithUnsafeMutableBytes(minimumWritableBytes: stateHead.room + body.count) { target in
            guard let start = target.baseAddress else { return 0 }
            return body.withUnsafeBytes { stateHead.write(job: event.job, seq: seq, body: $0, to: start) } - start
        }
    }

    /// Writes the lines of a batch from `row` on, until there are about `limit` bytes; gives the row that comes next.
    mutating func write(_ batch: ProgressBatch, from row: Int, to buffer: inout ByteBuffer, limit: Int) -> Int {
        let (text, head) = (batch.text, progressHead)
        guard row < text.lines.count else { return row }
        var begin = row > 0 ? text.lines[row - 1].end : 0
        var next = row
        let most = text.bytes.count - begin + (text.lines.count - row) * head.room
        let first = text.lines[row].end - begin + head.room
        buffer.writeWithUnsafeMutableBytes(minimumWritableBytes: max(first, min(most, limit))) { target in
            guard let start = target.baseAddress else { return 0 }
            return text.bytes.withUnsafeBytes { bytes in
                var position = start
                numbers.number(text.lines, from: row) { line, seq in
                    guard position - start < limit, target.count - (position - start) >= head.room + line.end - begin
                    else {
                        return false
                    }
                    let body = UnsafeRawBufferPointer(rebasing: bytes[begin..<line.end])
                    position = head.write(job: line.job, seq: seq, body: body, to: position)
                    begin = line.end
                    next += 1
                    return true
                }
                return position - start
            }
        }
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
