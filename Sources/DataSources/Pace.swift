import JobModel
import LoopTasks
import NIOCore

/// Holds a transfer to a number of bytes a second, counted from its beginning.
struct Pace {
    private let bytesPerSecond: Double
    private let clock: LoopClock
    private let start: LoopClock.Instant
    private var taken = 0

    init(bytesPerSecond: Int, on loop: any EventLoop) {
        self.bytesPerSecond = Double(bytesPerSecond)
        clock = LoopClock(loop)
        start = clock.now
    }

    /// `blocks` in pieces of at most a quarter of a second, so that progress does not come in jumps.
    func pieces(of blocks: [ByteBuffer]) -> [[ByteBuffer]] {
        let largest = max(4096, Int(bytesPerSecond / 4))
        return blocks.flatMap { block in
            var block = block
            var pieces: [[ByteBuffer]] = []
            while let piece = block.readSlice(length: min(largest, block.readableBytes)), piece.readableBytes > 0 {
                pieces.append([piece])
            }
            return pieces
        }
    }

    /// Waits until `count` more bytes are due.
    mutating func wait(for count: Int) async throws(JobError) {
        taken += count
        do {
            try await clock.sleep(until: start + .seconds(Double(taken) / bytesPerSecond), tolerance: nil)
        } catch {
            throw JobError(.cancelled, "The transfer was cancelled; start it again if it is needed.")
        }
    }
}
