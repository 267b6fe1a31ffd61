import NIOCore

/// Gives each read of a connection a buffer as large as the reads before let expect, and leaves the connection none.
///
/// NIO keeps the first buffer of a connection and uses it again unless the next may be larger; so the first is small, and
/// the next may always be larger. Of a thousand downloads that trickle, each would keep one of 16 KB or more otherwise.
/// The largest are those that malloc takes from its arenas, as larger ones would be mapped anew for each read.
struct ReceiveBuffers: RecvByteBufferAllocator {
    static let first = 1 << 10

    private var sizes = AdaptiveRecvByteBufferAllocator(minimum: 2 << 10, initial: 8 << 10, maximum: 256 << 10)
    private var isFirst = true

    func buffer(allocator: ByteBufferAllocator) -> ByteBuffer {
        isFirst ? allocator.buffer(capacity: Self.first) : sizes.buffer(allocator: allocator)
    }

    mutating func record(actualReadBytes: Int) -> Bool {
        if isFirst {
            isFirst = false
        } else {
            _ = sizes.record(actualReadBytes: actualReadBytes)
        }
        return true
    }
}
