import NIOCore
import Testing

@testable import DataSources

@Suite struct ReceiveBuffersTests {
    /// Reads so many bytes at once through NIO's pool of one buffer, and gives the room that each read had.
    private func rooms(_ counts: [Int]) -> [Int] {
        var pool = NIOPooledRecvBufferAllocator(capacity: 1, recvAllocator: ReceiveBuffers())
        return counts.map { count in
            var room = 0
            // The result is let go before the next read, as that of a slow download is.
            _ = pool.buffer(allocator: ByteBufferAllocator()) { buffer in
                room = buffer.writableBytes
                buffer.writeRepeatingByte(1, count: min(count, room))
            }
            pool.record(actualReadBytes: min(count, room))
            return room
        }
    }

    @Test func firstBuffer_isSmall_asItIsKept() {
        #expect(rooms([4096])[0] == ReceiveBuffers.first)
    }

    @Test func buffers_growAndShrink_withWhatIsRead() {
        let rooms = rooms([1 << 20] + Array(repeating: 1 << 20, count: 8) + Array(repeating: 100, count: 20))
        #expect(rooms[1] == 8 << 10, "the kept one is not used again")
        #expect(rooms[2] == 16 << 10)
        #expect(rooms.max() == ResponseStream.limit)
        #expect(rooms.last == 2 << 10)
    }
}
