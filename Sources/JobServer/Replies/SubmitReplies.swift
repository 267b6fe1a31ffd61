import JobCore
import JobModel
import JobProtocol

/// Answers a group of submissions, those that have lines of their own with one message to the outbox.
///
/// A group crosses lines: what one commit stored, of one connection. ``Replies`` are of one line, which is why a submission
/// in a batch still goes through them.
struct SubmitReplies {
    private let connection: Connection
    private var lines: JSONWriter
    /// The lines answered, calls without an id among them.
    private var answered = 0
    /// The watches that begin behind the answers.
    private var watches: [(watch: ConnectionWatch, unfinished: Set<JobID>)] = []

    init(connection: Connection, lines count: Int) {
        self.connection = connection
        lines = JSONWriter(reservingCapacity: min(count, 1024) * 96)
    }

    mutating func succeed(_ submit: Submit, _ answer: SubmittedJob, _ watch: ConnectionWatch?) {
        let unfinished: Set<JobID> = answer.state.isTerminal ? [] : [answer.job]
        func write(_ id: JSON, to writer: inout JSONWriter) {
            Answer.writeSubmission(
                id: id, job: answer.job, state: answer.state, created: answer.isCreated, watch: watch?.name, to: &writer
            )
        }
        if let batch = submit.batch {
            flush()
            let written = submit.id.map { id -> [UInt8] in
                var writer = JSONWriter()
                write(id, to: &writer)
                return writer.bytes
            }
            return batch.succeed(submit.id, answer: written) { watch?.open(unfinished: unfinished) }
        }
        answered += 1
        if let watch { watches.append((watch, unfinished)) }
        guard let id = submit.id else { return }
        write(id, to: &lines)
        lines.raw("\n")
    }

    mutating func fail(_ submit: Submit, _ error: ProtocolError) {
        if let batch = submit.batch {
            flush()
            return batch.fail(submit.id, error)
        }
        answered += 1
        guard let id = submit.id else { return }
        lines.raw(Answer.failure(id: id, error: error))
        lines.raw("\n")
    }

    /// Sends the answers so far; those of later calls come behind them.
    mutating func flush() {
        guard answered > 0 else { return }
        // Who submits one job at a time waits for this answer and nothing else.
        if !lines.bytes.isEmpty { connection.outbox.send(lines: lines.bytes, atOnce: answered == 1 && watches.isEmpty) }
        for (watch, unfinished) in watches { watch.open(unfinished: unfinished) }
        connection.answered(lines: answered)
        lines = JSONWriter()
        watches = []
        answered = 0
    }
}
