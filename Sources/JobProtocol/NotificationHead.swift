package import JobModel

/// The start of all notifications of one kind to one watch, up to the job's id.
package struct NotificationHead: Sendable {
    /// An upper bound on the bytes of a notification besides its snapshot.
    package static let most = 512

    private let bytes: [UInt8]

    package init(_ method: JobNotification.Method, watch: String) {
        bytes = Array(
            "{\"jsonrpc\":\"2.0\",\"method\":\"\(method.rawValue)\",\"params\":{\"watch\":\"\(watch)\",\"job\":".utf8)
    }

    /// The maximum number of bytes of a line besides its body.
    package var room: Int { bytes.count + Self.seq.utf8CodeUnitCount + 2 * UnsafeMutableRawPointer.mostDigits }

    /// Writes a line including its end, with ``room`` bytes besides the body available; returns where the line ends.
    /// ``JobNotification`` makes `body`; a `job.output` has no `seq`.
    package func write(
        job: JobID, seq: Int?, body: UnsafeRawBufferPointer, to start: UnsafeMutableRawPointer
    ) -> UnsafeMutableRawPointer {
        let head = bytes.withUnsafeBytes { start.writeBytes($0) }.writeDigits(of: Int(job))
        guard let seq else { return head.writeBytes(body) }
        let member = UnsafeRawBufferPointer(start: Self.seq.utf8Start, count: Self.seq.utf8CodeUnitCount)
        return head.writeBytes(member).writeDigits(of: seq).writeBytes(body)
    }

    private static let seq: StaticString = ",\"seq\":"
}

extension UnsafeMutableRawPointer {
    /// The maximum number of bytes of a whole number.
    fileprivate static var mostDigits: Int { 20 }

    /// Writes the digits of a number that is not negative, at most ``mostDigits`` bytes; returns their end.
    fileprivate func writeDigits(of number: Int) -> UnsafeMutableRawPointer {
        var (digits, rest) = (0, number)
        repeat {
            digits += 1
            rest /= 10
        } while rest > 0
        rest = number
        var index = digits
        while index > 0 {
            index -= 1
            storeBytes(
                of: UInt8(ascii: "0") &+ UInt8(truncatingIfNeeded: rest % 10), toByteOffset: index, as: UInt8.self)
            rest /= 10
        }
        return self + digits
    }

    /// Copies `bytes` to this position; returns where they end.
    fileprivate func writeBytes(_ bytes: UnsafeRawBufferPointer) -> UnsafeMutableRawPointer {
        UnsafeMutableRawBufferPointer(start: self, count: bytes.count).copyMemory(from: bytes)
        return self + bytes.count
    }
}
