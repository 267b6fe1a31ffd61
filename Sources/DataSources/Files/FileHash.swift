import SystemPackage
import Glibc
import JobModel

/// Reads what a file holds into a digest.
enum FileHash {
    private static let block = 1 << 20

    /// The digest so far of the first `size` bytes, which must be there; afterwards the file's offset is behind them.
    static func of(
        _ descriptor: Int32, _ path: String, upTo size: Int64, _ services: DownloadServices, _ control: TransferControl
    ) async throws(JobError) -> SHA256Digest {
        let files = services.files
        var hash = SHA256Digest()
        var rest = size
        do throws(Errno) {
            try await services.queue.run { () throws(Errno) in try files.seek(descriptor, 0) }
            // A few blocks at a time, so that a stop does not wait until a large file is read.
            while rest > 0, !control.isInterrupted, !Task.isCancelled {
                let (before, portion) = (hash, min(rest, Int64(16 * block)))
                hash = try await services.queue.run { () throws(Errno) in
                    try Self.hash(before, descriptor, portion, files)
                }
                rest -= portion
            }
        } catch {
            throw JobError(storage: error, "read", path)
        }
        try control.check()
        guard rest == 0 else {
            throw JobError(
                .cancelled, "The download was cancelled while \"\(path)\" was read; start it again if needed.")
        }
        return hash
    }

    private static func hash(
        _ before: SHA256Digest, _ descriptor: Int32, _ size: Int64, _ files: FileOperations
    ) throws(Errno) -> SHA256Digest {
        var hash = before
        var rest = Int(size)
        let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: block, alignment: 4096)
        defer { buffer.deallocate() }
        while rest > 0 {
            let count = try files.read(
                descriptor, UnsafeMutableRawBufferPointer(rebasing: buffer[..<min(rest, block)]))
            // It was longer a moment ago, so somebody is truncating it.
            guard count > 0 else { throw Errno.ioError }
            hash.update(UnsafeRawBufferPointer(rebasing: buffer[..<count]))
            rest -= count
        }
        return hash
    }
}
