/// A piece of a program's output.
package struct OutputPiece: Sendable, Equatable {
    /// Bytes that one stream got in a row.
    package struct Record: Sendable, Equatable {
        package let isError: Bool
        package var bytes: [UInt8]

        package init(isError: Bool, bytes: [UInt8]) { (self.isError, self.bytes) = (isError, bytes) }
    }

    package var records: [Record] = []
    /// The offset of the following piece.
    package var next: Int64
    /// All bytes of the attempt so far, dropped ones included, and the dropped ones.
    package var size: Int64 = 0
    package var omitted: Int64 = 0

    package init(at offset: Int64) { next = max(0, offset) }

    /// The piece of output whose log could not be begun: the result of the job's program tells how much it was.
    package init(lostBy job: JobRow, at offset: Int64) {
        self.init(at: offset)
        guard job.plan.isProgram(job.link), case .success(.inline(let text)) = job.carried else { return }
        let result = JSON(stored: text)
        // The link may have a `catch`, which gives any value.
        guard result["exit"] != nil, let lost = result["omitted"]?.int, lost >= 0 else { return }
        omitted = Int64(lost)
        (size, next) = (omitted, max(next, omitted))
    }
}
