import DeferredKit
import Dispatch
import JobCore
package import JobModel
import Synchronization

/// The latest progress of one run, which its source reports on any thread.
package final class RunProgress: Sendable {
    struct Snapshot {
        /// Nil before the first report.
        var latest: Progress?
        var reports = 0
        var unit = Progress.Unit.bytes
        /// The bytes that its program has written; nil if it wrote nothing.
        var output: Int64?
        /// The file into which its source has put the response body.
        var body: BlobReference?
        fileprivate var rate = RateMeter()

        /// The bytes transferred so far; 0 if the source counts something else.
        var bytes: Int64 { latest.map { $0.unit == .bytes ? $0.completed : 0 } ?? 0 }
    }

    let job: JobID
    /// Its owner and queue, which matter only at the node where it runs.
    let owner: UInt32
    let queue: String
    package let run: RunID
    package let link: Int
    package let attempt: Int
    let isProgram: Bool
    /// The file with the output of its program.
    package let file: BlobReference
    private let state = Mutex(Snapshot())
    private let board: Board

    init(of order: RunOrder, on board: Board) {
        (job, run, link, attempt) = (order.job.id, order.run, order.job.link, max(1, order.job.attempt))
        (owner, queue) = (order.job.owner, order.job.queue)
        isProgram = order.job.presentSource == .program
        file = run.output()
        self.board = board
    }

    /// A run at another node.
    init(of job: JobID, _ run: RunID, link: Int, attempt: Int, isProgram: Bool, on board: Board) {
        (self.job, self.run, self.link, self.attempt) = (job, run, link, attempt)
        (owner, queue, self.isProgram, file, self.board) = (0, "", isProgram, run.outputSoFar(), board)
    }

    var snapshot: Snapshot { state.withLock(\.self) }

    func report(_ update: ProgressUpdate) {
        state.withLock { state in
            state.latest = Progress(
                completed: update.completed, total: update.total, unit: state.unit,
                rate: state.rate.measure(update.completed))
            state.reports += 1
        }
    }

    /// Sets the unit of later reports.
    func count(in unit: Progress.Unit) { state.withLock { $0.unit = unit } }

    func keep(_ body: BlobReference) { state.withLock { $0.body = body } }

    func wrote(_ size: Int64) {
        state.withLock { $0.output = size }
        board.wakeReaders(of: job, at: size)
    }
}

/// Measures a rate as an exponentially weighted mean.
struct RateMeter {
    /// The minimum number of nanoseconds between two measurements.
    private static let window: UInt64 = 250_000_000

    private var last: (time: UInt64, completed: Int64)?
    private var rate: Double?

    /// The rate in units per second; nil before the second measurement.
    mutating func measure(_ completed: Int64) -> Double? {
        let now = DispatchTime.now().uptimeNanoseconds
        guard let last, completed >= last.completed, now >= last.time else {
            self.last = (now, completed)
            rate = nil
            return nil
        }
        guard now - last.time >= Self.window else { return rate }
        let present = Double(completed - last.completed) / (Double(now - last.time) / 1e9)
        rate = rate.map { 0.6 * $0 + 0.4 * present } ?? present
        self.last = (now, completed)
        return rate
    }
}
