package import JobModel

/// Writes the notifications of one kind to one watch.
///
/// The body, which is everything after `seq` including the end of the line, is the same for all watches of a job, so it
/// is written once and shared. The head, up to the job's id, is the same for all notifications.
package struct JobNotification: Sendable {
    package enum Method: String, Sendable {
        case progress = "job.progress"
        case output = "job.output"
        case state = "job.state"
    }

    /// An upper bound on the bytes of a notification besides its snapshot.
    package static let most = 512

    private let head: [UInt8]

    package init(_ method: Method, watch: String) {
        head = Array(
            "{\"jsonrpc\":\"2.0\",\"method\":\"\(method.rawValue)\",\"params\":{\"watch\":\"\(watch)\",\"job\":".utf8)
    }

    /// The maximum number of bytes of a line besides its body.
    package var room: Int { head.count + Self.seq.utf8CodeUnitCount + 2 * UnsafeMutableRawPointer.mostDigits }

    /// Writes a line including its end, with ``room`` bytes besides the body available; returns where the line ends.
    /// A `job.output` has no `seq`.
    package func write(
        job: JobID, seq: Int?, body: UnsafeRawBufferPointer, to start: UnsafeMutableRawPointer
    ) -> UnsafeMutableRawPointer {
        let head = head.withUnsafeBytes { start.writeBytes($0) }.writeDigits(of: Int(job))
        guard let seq else { return head.writeBytes(body) }
        let member = UnsafeRawBufferPointer(start: Self.seq.utf8Start, count: Self.seq.utf8CodeUnitCount)
        return head.writeBytes(member).writeDigits(of: seq).writeBytes(body)
    }

    private static let seq: StaticString = ",\"seq\":"

    // MARK: Bodies

    /// Writes the body of a `job.progress`.
    package static func writeProgress(
        link: Int, links: Int, _ progress: Progress, coalesced: Int, to writer: inout JSONWriter
    ) {
        let text = #","link":\#(link),"links":\#(links),"progress":\#(progress.json),"coalesced":\#(coalesced)}}"#
        writer.raw(text: text + "\n")
    }

    /// Writes the body of a `job.output`.
    package static func writeOutput(link: Int, attempt: Int, size: Int64, to writer: inout JSONWriter) {
        writer.raw(text: #","link":\#(link),"attempt":\#(attempt),"size":\#(size)}}"# + "\n")
    }

    /// Returns the body of a `job.state`; `snapshot` is JSON text.
    package static func state(_ state: JobState, snapshot: [UInt8]) -> [UInt8] {
        var writer = JSONWriter(reservingCapacity: snapshot.count + 64)
        writer.raw(text: #","state":"\#(state.rawValue)","snapshot":"#)
        writer.raw(snapshot)
        writer.raw("}}\n")
        return writer.bytes
    }
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
