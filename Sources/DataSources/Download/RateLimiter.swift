import JobModel
import LoopTasks
import NIOCore

/// Limits a transfer to a number of bytes a second, counted from its beginning.
struct RateLimiter {
    private let bytesPerSecond: Double
    private let control: TransferControl
    private let clock: any EventLoop
    private let start: NIODeadline
    private var count: Int64 = 0

    init(bytesPerSecond: Int, _ handle: TransferHandle) {
        self.bytesPerSecond = Double(bytesPerSecond)
        control = handle.control
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
    mutating func wait(for count: Int) async throws(JobError) {
        self.count = self.count.saturatingAdding(Int64(count))
        do throws(JobError) {
            try await control.sleep(
                until: start + .seconds(saturating: Double(self.count) / bytesPerSecond), by: clock)
        } catch {
            guard control.isInterrupted, !Task.isCancelled else { throw error }
        }
    }
}
