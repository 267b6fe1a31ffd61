import Glibc
import JobModel
import SystemPackage

extension Transfer {
    private static let block = 1 << 20
    /// The bytes after which hashing looks whether the transfer was stopped.
    private static let portion: Int64 = 16 << 20

    /// Continues `digest` with the bytes of a file in `range`, which must exist.
    func hash(
        _ descriptor: Int32, _ path: String, _ range: Range<Int64>, after digest: SHA256Digest = SHA256Digest()
    ) async throws(JobError) -> SHA256Digest {
        var (digest, position) = (digest, range.lowerBound)
        while position < range.upperBound {
            try control.check()
            guard !Task.isCancelled else { throw TransferControl.cancelled }
            let (before, portion) = (digest, position..<min(position + Self.portion, range.upperBound))
            do throws(Errno) {
                digest = try await userFiles.run { [files] () throws(Errno) in
                    try Self.hash(descriptor, portion, after: before, files)
                }
            } catch {
                throw JobError(storage: error, "read", path)
            }
            position = portion.upperBound
        }
        return digest
    }

    private static func hash(
        _ descriptor: Int32, _ range: Range<Int64>, after digest: SHA256Digest, _ files: FileOperations
    ) throws(Errno) -> SHA256Digest {
        var (digest, position) = (digest, range.lowerBound)
        let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: block, alignment: 4096)
        defer { buffer.deallocate() }
        while position < range.upperBound {
            let room = Int(min(Int64(block), range.upperBound - position))
            let count = try files.readAt(descriptor, position, UnsafeMutableRawBufferPointer(rebasing: buffer[..<room]))
            // The file was longer a moment ago, so another process is truncating it.
            guard count > 0 else { throw Errno.ioError }
            digest.update(UnsafeRawBufferPointer(rebasing: buffer[..<count]))
            position += Int64(count)
        }
        return digest
    }
}
