import JobModel
import LoopTasks
import NIOCore
import Synchronization

/// Limits the bytes per second of a download, from its beginning and over all of its connections.
final class RateLimiter: Sendable {
    private let bytesPerSecond: Double
    private let transfer: Transfer
    private let start: NIODeadline
    private let count = Mutex<Int64>(0)

    init(bytesPerSecond: Int, _ transfer: Transfer) {
        self.bytesPerSecond = Double(bytesPerSecond)
        self.transfer = transfer
        start = transfer.clock.now
    }

    /// The most bytes to handle at a time: a quarter of a second's, so that progress is smooth.
    var largestPiece: Int { max(4096, Int(saturating: bytesPerSecond / 4)) }

    /// Waits until `count` more bytes are due. An interrupted transfer does not wait: it keeps the few bytes that it
    /// has.
    func wait(for count: Int) async throws(JobError) {
        let total = self.count.withLock { total in
            total = total.saturatingAdding(Int64(count))
            return total
        }
        let due = start + .seconds(saturating: Double(total) / bytesPerSecond)
        do throws(JobError) {
            try await transfer.control.sleep(until: due, by: transfer.clock)
        } catch {
            guard transfer.control.isInterrupted, !Task.isCancelled else { throw error }
        }
    }
}
