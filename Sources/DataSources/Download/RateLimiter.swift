import JobModel
import LoopTasks
import NIOCore
import Synchronization

/// Limits a transfer to a number of bytes a second, counted from its beginning, over all of its connections.
final class RateLimiter: Sendable {
    private let bytesPerSecond: Double
    private let clock: any EventLoop
    private let start: NIODeadline
    private let count = Mutex<Int64>(0)

    init(bytesPerSecond: Int, _ handle: TransferHandle) {
        self.bytesPerSecond = Double(bytesPerSecond)
        clock = handle.clock
        start = clock.now
    }

    /// `blocks` in pieces of at most a quarter of a second, so that progress does not come in jumps.
    func pieces(of blocks: [ByteBuffer]) -> [[ByteBuffer]] {
        let largest = max(4096, Int(saturating: bytesPerSecond / 4))
        return blocks.flatMap { block in
            var block = block
            var pieces: [[ByteBuffer]] = []
            while let piece = block.readSlice(length: min(largest, block.readableBytes)), piece.readableBytes > 0 {
                pieces.append([piece])
            }
            return pieces
        }
    }

    /// Waits until `count` more bytes are due. Once the transfer is interrupted there is no more waiting: what has come in
    /// is kept, and that is little.
    func wait(for count: Int, _ control: TransferControl) async throws(JobError) {
        let total = self.count.withLock { total in
            total = total.saturatingAdding(Int64(count))
            return total
        }
        let due = start + .seconds(saturating: Double(total) / bytesPerSecond)
        guard due > clock.now else { return }
        do throws(JobError) {
            try await control.sleep(until: due, by: clock)
        } catch {
            guard control.isInterrupted, !Task.isCancelled else { throw error }
        }
    }
}
