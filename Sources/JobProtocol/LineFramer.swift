import Glibc

/// Splits a stream of bytes into lines, with a limit on the length of a line.
///
/// States: within a line, and within the discarded rest of an overlong line. There is no terminal state and no invalid
/// event. The bytes of an overlong line are not kept.
package struct LineFramer: Sendable {
    package enum Frame: Sendable, Equatable {
        /// The bytes of a line without its end; never empty.
        case line([UInt8])
        /// A line exceeded the limit and its rest is being discarded; occurs once for that line.
        case tooLong
    }

    /// The maximum length of a line in bytes, without its end; the limit at the end of a line applies to it.
    package var limit: Int
    private var partial: [UInt8] = []
    private var isDiscarding = false

    /// Creates a framer for lines of at most `limit` bytes, without their ends.
    package init(limit: Int) { self.limit = limit }

    /// The number of bytes kept of the unfinished line.
    package var partialSize: Int { partial.count }

    /// Consumes the next bytes of the stream and appends the completed frames to `frames`.
    package mutating func feed(_ bytes: UnsafeRawBufferPointer, into frames: inout [Frame]) {
        var start = 0
        while let end = bytes.firstLineEnd(from: start) {
            finish(bytes[start..<end], into: &frames)
            start = end + 1
        }
        keep(bytes[start...], into: &frames)
    }

    /// Ends the stream: the kept bytes are the last line, although its end is missing.
    package mutating func finish(into frames: inout [Frame]) {
        finish(UnsafeRawBufferPointer(start: nil, count: 0)[...], into: &frames)
    }

    private mutating func finish(_ tail: Slice<UnsafeRawBufferPointer>, into frames: inout [Frame]) {
        var line = exchange(&partial, with: [])
        if exchange(&isDiscarding, with: false) { return }
        // One more byte than the limit may be kept: the CR of the line's end.
        guard line.count + tail.count <= limit + 1 else { return frames.append(.tooLong) }
        line.append(contentsOf: tail)
        if line.last == UInt8(ascii: "\r") { line.removeLast() }
        guard line.count <= limit else { return frames.append(.tooLong) }
        if !line.isEmpty { frames.append(.line(line)) }
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
    /// Returns the offset of the next line feed, by `memchr`: a loop takes 1,800 instructions for a 170-byte job.
    fileprivate func firstLineEnd(from start: Int) -> Int? {
        guard start < count, let base = baseAddress else { return nil }
        return memchr(base + start, Int32(UInt8(ascii: "\n")), count - start).map { UnsafeRawPointer($0) - base }
    }
}
