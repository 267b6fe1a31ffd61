import SystemPackage
import Glibc
import JobModel

/// Reads what a file holds into a digest.
enum FileHash {
    private static let block = 1 << 20
    /// Bytes between two looks at whether the transfer was stopped.
    private static let portion: Int64 = 16 << 20

    /// `digest` and then the bytes of a file in `range`, which must be there.
    static func of(
        _ descriptor: Int32, _ path: String, _ range: Range<Int64>, after digest: SHA256Digest = SHA256Digest(),
        _ services: DownloadServices, _ control: TransferControl
    ) async throws(JobError) -> SHA256Digest {
        let files = services.files
        var (digest, position) = (digest, range.lowerBound)
        while position < range.upperBound {
            try control.check()
            guard !Task.isCancelled else { throw TransferControl.cancelled }
            let (before, piece) = (digest, position..<min(position + portion, range.upperBound))
            do throws(Errno) {
                digest = try await services.queue.run { () throws(Errno) in
                    try Self.hash(before, descriptor, piece, files)
                }
            } catch {
                throw JobError(storage: error, "read", path)
            }
            position = piece.upperBound
        }
        return digest
    }

    private static func hash(
        _ before: SHA256Digest, _ descriptor: Int32, _ range: Range<Int64>, _ files: FileOperations
    ) throws(Errno) -> SHA256Digest {
        var (digest, position) = (before, range.lowerBound)
        let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: block, alignment: 4096)
        defer { buffer.deallocate() }
        while position < range.upperBound {
            let room = Int(min(Int64(block), range.upperBound - position))
            let count = try files.readAt(
                descriptor, position, UnsafeMutableRawBufferPointer(rebasing: buffer[..<room]))
            // It was longer a moment ago, so somebody is truncating it.
            guard count > 0 else { throw Errno.ioError }
            digest.update(UnsafeRawBufferPointer(rebasing: buffer[..<count]))
            position += Int64(count)
        }
        return digest
    }
}
