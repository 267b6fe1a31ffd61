import Glibc

/// Cuts a stream of bytes into lines, with a bound on the length of a line.
///
/// States: within a line, and within the discarded rest of one that is too long. It has no terminal state and no invalid
/// event. Bytes of a line that is too long are not kept.
package struct LineFramer: Sendable {
    package enum Frame: Sendable, Equatable {
        /// The bytes of a line without its end; never empty.
        case line([UInt8])
        /// A line went past the limit; its rest is being discarded. Comes once for that line.
        case tooLong
        /// The same for a line for which there is no memory.
        case noRoom
    }

    /// Bytes of a line without its end that are kept whether or not there is room.
    package static let alwaysKept = 4 << 10

    /// Bytes of the longest line, its end not counted; a line that has begun goes by the limit at its end.
    package var limit: Int
    private let hasRoom: @Sendable (Int) -> Bool
    private var partial: [UInt8] = []
    /// Bytes of the present line that were counted by `hasRoom`, beyond what is always kept.
    package private(set) var kept = 0
    private var isDiscarding = false

    /// A framer for lines of at most `limit` bytes, their ends not counted. `hasRoom` counts so many more bytes of a line
    /// whose end has not come, or refuses to.
    package init(limit: Int, hasRoom: @escaping @Sendable (Int) -> Bool = { _ in true }) {
        self.limit = limit
        self.hasRoom = hasRoom
    }

    /// Consumes the next bytes of the stream and appends the frames that they complete to `frames`.
    package mutating func feed(_ bytes: UnsafeRawBufferPointer, into frames: inout [Frame]) {
        var start = 0
        while let end = bytes.firstLineEnd(from: start) {
            finish(bytes[start..<end], into: &frames)
            start = end + 1
        }
        keep(bytes[start...], into: &frames)
    }

    private mutating func finish(_ tail: Slice<UnsafeRawBufferPointer>, into frames: inout [Frame]) {
        defer {
            kept = 0
            partial.removeAll(keepingCapacity: partial.capacity <= 64 << 10)
            isDiscarding = false
        }
        if isDiscarding { return }
        var line = tail
        if partial.isEmpty {
            if line.last == UInt8(ascii: "\r") { line = line.dropLast() }
            guard line.count <= limit else { return frames.append(.tooLong) }
            if !line.isEmpty { frames.append(.line(Array(line))) }
            return
        }
        // One byte more than the limit may wait: a CR that belongs to the end.
        guard partial.count + line.count <= limit + 1 else { return frames.append(.tooLong) }
        partial.append(contentsOf: line)
        if partial.last == UInt8(ascii: "\r") { partial.removeLast() }
        guard partial.count <= limit else { return frames.append(.tooLong) }
        if !partial.isEmpty { frames.append(.line(partial)) }
    }

    private mutating func keep(_ tail: Slice<UnsafeRawBufferPointer>, into frames: inout [Frame]) {
        guard !tail.isEmpty, !isDiscarding else { return }
        guard partial.count + tail.count <= limit + 1 else {
            return discard(.tooLong, into: &frames)
        }
        let more = max(0, partial.count + tail.count - Self.alwaysKept) - kept
        if more > 0 {
            guard hasRoom(more) else { return discard(.noRoom, into: &frames) }
            kept += more
        }
        partial.append(contentsOf: tail)
    }

    private mutating func discard(_ frame: Frame, into frames: inout [Frame]) {
        frames.append(frame)
        partial = []
        kept = 0
        isDiscarding = true
    }
}

extension UnsafeRawBufferPointer {
    /// The offset of the next line feed. By `memchr`, as a loop over bytes takes 1,800 instructions for a job of 170 bytes.
    fileprivate func firstLineEnd(from start: Int) -> Int? {
        guard start < count, let base = baseAddress else { return nil }
        return memchr(base + start, Int32(UInt8(ascii: "\n")), count - start).map { UnsafeRawPointer($0) - base }
    }
}
