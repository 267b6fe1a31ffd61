import JobModel
import JobProtocol

extension NotificationHead {
    /// A line of its own, its end included.
    func line(job: JobID, seq: Int, body: [UInt8]) -> [UInt8] {
        [UInt8](unsafeUninitializedCapacity: room + body.count) { line, count in
            guard let start = UnsafeMutableRawPointer(line.baseAddress) else { return }
            count = body.withUnsafeBytes { write(job: job, seq: seq, body: $0, to: start) } - start
        }
    }
}
