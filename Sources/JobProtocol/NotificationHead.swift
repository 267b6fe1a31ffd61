package import JobModel

/// The start of all notifications of one kind to one watch, up to the job's id.
package struct NotificationHead: Sendable {
    /// More than a notification takes besides a snapshot.
    package static let most = 512

    private let bytes: [UInt8]

    package init(_ method: JobNotification.Method, watch: String) {
        bytes = Array(
            "{\"jsonrpc\":\"2.0\",\"method\":\"\(method.rawValue)\",\"params\":{\"watch\":\"\(watch)\",\"job\":".utf8)
    }

    /// The most bytes that a line takes besides its body.
    package var room: Int { bytes.count + 2 * UnsafeMutableRawPointer.mostDigits + MemoryLayout<UInt64>.size }

    /// Writes a line, its end included, where there is ``room`` and room for the body; gives where it ends. `body` is made
    /// by ``JobNotification``.
    package func write(
        job: JobID, seq: Int, body: UnsafeRawBufferPointer, to start: UnsafeMutableRawPointer
    ) -> UnsafeMutableRawPointer {
        let position = bytes.withUnsafeBytes { head in
            UnsafeMutableRawBufferPointer(start: start, count: head.count).copyMemory(from: head)
            return (start + head.count).writeDigits(of: Int(job))
        }
        // Eight bytes at once, of which the number that follows takes the last.
        position.storeBytes(of: Self.seq, as: UInt64.self)
        let end = (position + 7).writeDigits(of: seq)
        UnsafeMutableRawBufferPointer(start: end, count: body.count).copyMemory(from: body)
        return end + body.count
    }

    /// `,"seq":` and a space.
    private static let seq = ",\"seq\": ".utf8.reversed().reduce(0) { $0 << 8 | UInt64($1) }.littleEndian
}
