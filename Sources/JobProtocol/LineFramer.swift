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
    }

    /// Bytes of the longest line, its end not counted; a line that has begun goes by the limit at its end.
    package var limit: Int
    private var partial: [UInt8] = []
    private var isDiscarding = false

    /// A framer for lines of at most `limit` bytes, their ends not counted.
    package init(limit: Int) {
        self.limit = limit
    }

    /// Bytes that are kept of a line whose end has not come.
    package var partialSize: Int { partial.count }

    /// Consumes the next bytes of the stream and appends the frames that they complete to `frames`.
    package mutating func feed(_ bytes: UnsafeRawBufferPointer, into frames: inout [Frame]) {
        var start = 0
        while let end = bytes.firstLineEnd(from: start) {
            finish(bytes[start..<end], into: &frames)
            start = end + 1
        }
        keep(bytes[start...], into: &frames)
    }

    /// The stream has ended: what is kept is a line, though its end did not come.
    package mutating func finish(into frames: inout [Frame]) {
        finish(UnsafeRawBufferPointer(start: nil, count: 0)[...], into: &frames)
    }

    private mutating func finish(_ tail: Slice<UnsafeRawBufferPointer>, into frames: inout [Frame]) {
        defer {
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
            frames.append(.tooLong)
            partial = []
            isDiscarding = true
            return
        }
        partial.append(contentsOf: tail)
    }
}

extension UnsafeRawBufferPointer {
    /// The offset of the next line feed. By `memchr`, as a loop over bytes takes 1,800 instructions for a job of 170 bytes.
    fileprivate func firstLineEnd(from start: Int) -> Int? {
        guard start < count, let base = baseAddress else { return nil }
        return memchr(base + start, Int32(UInt8(ascii: "\n")), count - start).map { UnsafeRawPointer($0) - base }
    }
}
