import Glibc
import JobModel
import SystemPackage

/// The layout of the file that keeps the output of one attempt of a program: its beginning and its end.
///
/// After the head, the file has slots of equal size, one for each block of output. The first blocks keep the beginning, half
/// of the limit; the other slots are a ring for the latest blocks. A block begins with its own head and the marks at which
/// the stream changes, so that a reader needs only the file, even while the program runs or after the daemon was killed.
/// Numbers have the machine's byte order.
enum OutputLog {
    /// A stream of a program.
    enum Stream: Int, Sendable { case out, err }

    /// The head of the file.
    struct Head: BitwiseCopyable {
        /// The most bytes of output that readers get.
        var limit: UInt64
        /// Bytes dropped at the end, for lack of room.
        var dropped: UInt64 = 0
        /// Blocks that were begun.
        var blocks: UInt64 = 0
        /// The most bytes of output in a block.
        var blockSize: UInt32
        /// Slots for the beginning, and all slots.
        var firstSlots: UInt32
        var slots: UInt32

        init(limit: Int) {
            self.limit = UInt64(limit)
            let half = max(1, (limit + 1) / 2)
            blockSize = UInt32(min(OutputLog.longestBlock, half))
            firstSlots = UInt32((half - 1) / Int(blockSize) + 1)
            // The oldest block of the ring is being replaced while the others must hold half of the limit.
            slots = firstSlots + UInt32((limit / 2 + Int(blockSize) - 1) / Int(blockSize) + 1)
        }

        /// The bytes that are kept of the beginning, and of the end.
        var beginning: Int64 { Int64(limit / 2 + limit % 2) }
        var end: Int64 { Int64(limit / 2) }

        /// Whether the numbers can be those of a log.
        var isValid: Bool {
            (1...UInt32(OutputLog.longestBlock)).contains(blockSize) && firstSlots <= slots && slots < 1 << 24
                && limit < 1 << 40 && dropped < 1 << 62 && blocks < 1 << 62
                && (slots > firstSlots || blocks <= UInt64(firstSlots))
        }

        /// The blocks of the ring that are kept.
        var ring: Range<UInt64> {
            let first = min(blocks, UInt64(firstSlots))
            return max(first, blocks - min(blocks, UInt64(slots - firstSlots)))..<blocks
        }

        func slot(of block: UInt64) -> UInt32 {
            let first = UInt64(firstSlots)
            return UInt32(block < first ? block : first + (block - first) % UInt64(slots - firstSlots))
        }

        /// The most bytes of output in a block.
        func capacity(of block: UInt64) -> Int {
            guard block + 1 == UInt64(firstSlots) else { return Int(blockSize) }
            return min(Int(blockSize), Int(beginning) - Int(block) * Int(blockSize))
        }

        /// The most changes of the stream in a block; a block with more of them is shorter.
        var marks: Int { max(4, Int(blockSize) / 64) }

        /// Where the block in a slot begins in the file.
        func position(of slot: UInt32) -> Int64 {
            Int64(MemoryLayout<Head>.size) + Int64(slot) * slotSize
        }

        var slotSize: Int64 {
            Int64(MemoryLayout<BlockHead>.size + marks * MemoryLayout<UInt32>.size + Int(blockSize))
        }

        /// Where the output of the block begins, behind its head and marks.
        func dataPosition(of slot: UInt32) -> Int64 {
            position(of: slot) + Int64(MemoryLayout<BlockHead>.size + marks * MemoryLayout<UInt32>.size)
        }
    }

    /// The head of a block.
    struct BlockHead: BitwiseCopyable {
        /// The bytes of output before it.
        var offset: UInt64 = 0
        var size: UInt32 = 0
        var marks: UInt32 = 0
    }

    static let longestBlock = 64 << 10

    /// A mark: the stream of the bytes from an index of a block on.
    static func mark(_ stream: Stream, at index: UInt32) -> UInt32 { index << 1 | UInt32(stream.rawValue) }
}
