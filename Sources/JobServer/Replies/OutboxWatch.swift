import JobCore
import JobEngine
import JobModel
import JobProtocol
import NIOCore

/// What an outbox knows of one watch: its unfinished jobs, the start of its lines, and the progress and output that wait.
///
/// Updates are buffered until the answer that names the watch is on its way. Only the latest progress of each job waits; a
/// later state of the job replaces it.
struct OutboxWatch {
    private let stateHead: NotificationHead
    /// Updates that came before the answer; nil once the watch is open.
    private var buffered: [JobUpdate]? = []
    private var bufferedBytes = 0
    /// Jobs whose end is not yet reported, and the number of the last notification of each.
    private var unfinished: [JobID: Int] = [:]
    /// Whether `unfinished` has every unfinished job covered, so that only state changes can add one.
    private var knowsAll = true
    /// The job versions in its answer; events of the same or an earlier version are dropped.
    private var versions: [JobID: Int64] = [:]
    private var progress: WaitingBatch
    private var output: WaitingBatch
    /// Its memory, and the part that does not change.
    private let memory: BudgetCharge?
    private let ownBytes: Int

    init(_ number: Int, charge: BudgetCharge? = nil) {
        stateHead = NotificationHead(.state, watch: "w\(number)")
        (progress, output) = (WaitingBatch(.progress, watch: number), WaitingBatch(.output, watch: number))
        memory = charge
        ownBytes = charge?.bytes ?? 0
    }

    /// Whether the watch is open and every watched job is finished.
    var isSettled: Bool { buffered == nil && unfinished.isEmpty }

    /// Whether progress or output waits.
    var hasProgress: Bool { !progress.isEmpty || !output.isEmpty }

    // MARK: - Updates

    /// Passes on buffered and later updates.
    mutating func open(
        unfinished jobs: Set<JobID>, versions: [JobID: Int64], isAll: Bool, to lines: inout ByteBuffer
    ) {
        for job in jobs { unfinished[job] = 0 }
        self.versions = versions
        knowsAll = isAll
        let updates = exchange(&buffered, with: nil) ?? []
        bufferedBytes = 0
        for update in updates { receive(update, to: &lines, within: .max) }
    }

    /// Buffers an update, or passes on what the answer does not show.
    mutating func receive(_ update: JobUpdate, to lines: inout ByteBuffer, within most: Int) {
        if buffered != nil { return buffer(update, within: most) }
        switch update {
        case .event(let event):
            if let version = versions[event.job] {
                guard event.version > version else {
                    // Progress before the answer can have added a job whose end the answer shows.
                    if event.isLast { forget(event.job) }
                    return
                }
                versions[event.job] = nil
            }
            write(event, to: &lines)
        case .progress(let batch): add(batch)
        case .output(let batch): add(batch, isOutput: true)
        case .gone(let job): forget(job)
        }
    }

    /// Buffers an update. State changes must not be dropped, so the connection ends if they exceed the outbox's limit;
    /// excess progress is dropped. In a batch, the answer waits for all other calls.
    private mutating func buffer(_ update: JobUpdate, within most: Int) {
        switch update {
        // Others may share the text, or be gone before this one: it counts for each.
        case .event(let event): bufferedBytes += Self.bytesPerJob + event.body.count
        case .progress(let batch), .output(let batch):
            let size = batch.rows.count * Self.bytesPerJob
            guard size <= most - bufferedBytes else { return }
            bufferedBytes += size
        case .gone: bufferedBytes += Self.bytesPerJob
        }
        buffered?.append(update)
    }

    /// The approximate bytes of an unfinished job, and of a buffered update besides its text.
    private static let bytesPerJob = 64
    /// The smallest change that is counted, because all connections of a user share the count.
    private static let countedAtOnce = 64 * bytesPerJob

    /// Counts the memory of buffered events and jobs; returns false if it is too much.
    func fits(within most: Int) -> Bool {
        guard bufferedBytes <= most else { return false }
        let bytes = ownBytes + unfinished.count * Self.bytesPerJob + bufferedBytes
        guard let memory, abs(bytes - memory.bytes) >= Self.countedAtOnce else { return true }
        return memory.resize(to: bytes)
    }

    // MARK: - Progress

    /// Adds progress, or output, to what waits.
    mutating func add(_ batch: ProgressBatch, isOutput: Bool = false) {
        // A batch has very many rows, and usually all jobs are known.
        if !knowsAll { for row in batch.rows where unfinished[row.job] == nil { unfinished[row.job] = 0 } }
        if isOutput { output.add(batch) } else { progress.add(batch) }
    }

    /// Writes lines of what waits, about `limit` bytes at most; returns true once none is left.
    mutating func writeProgress(to buffer: inout ByteBuffer, limit: Int) -> Bool {
        progress.write(to: &buffer, limit: limit, &unfinished) && output.write(to: &buffer, limit: limit, &unfinished)
    }

    // MARK: - States

    /// Writes the line of a state, which replaces the progress of its job.
    private mutating func write(_ event: JobEvent, to buffer: inout ByteBuffer) {
        // States may go on without further progress, so only jobs of the batch are remembered.
        let seq = unfinished.next(of: event.job)
        if event.isLast { forget(event.job) } else { progress.remove(event.job) }
        let body = event.body
        buffer.writeWithUnsafeMutableBytes(minimumWritableBytes: stateHead.room + body.count) { target in
            guard let start = target.baseAddress else { return 0 }
            return body.withUnsafeBytes { stateHead.write(job: event.job, seq: seq, body: $0, to: start) } - start
        }
    }

    /// Forgets a job that has ended.
    private mutating func forget(_ job: JobID) {
        progress.remove(job)
        output.remove(job)
        unfinished[job] = nil
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
