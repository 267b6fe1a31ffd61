import JobModel
import Synchronization

/// The bytes that running downloads still expect on each disk, so that together they do not fill it.
final class DiskRoom: Sendable {
    private let expected = Mutex<[UInt64: Int64]>([:])

    /// Sets `bytes` of a disk aside for a download that begins or goes on; throws if they are not there.
    func lease(
        _ bytes: Int64, for target: DownloadTarget, _ transfer: Transfer
    ) async throws(JobError) -> Lease? {
        let minimum = Int64(transfer.settings.downloads.minimumFree)
        return try await transfer.userFiles.run { () throws(JobError) in
            try self.lease(bytes, for: target, leaving: minimum)
        }
    }

    /// `minimum` bytes stay free. Blocks.
    private func lease(
        _ bytes: Int64, for target: DownloadTarget, leaving minimum: Int64
    ) throws(JobError) -> Lease? {
        guard minimum > 0, bytes > 0, let disk = target.disk, let free = target.freeBytes else { return nil }
        let place = "The file is \(bytes) bytes long, and the disk of \"\(target.path.directory)\""
        guard bytes <= disk.size - minimum else {
            throw JobError(
                .storage,
                "\(place) has \(disk.size) bytes, of which \(minimum) must stay free; download it to a larger disk.")
        }
        let (others, hasRoom) = expected.withLock { expected in
            let others = expected[disk.id, default: 0]
            let hasRoom = bytes <= free - minimum - others
            if hasRoom { expected[disk.id] = others + bytes }
            return (others, hasRoom)
        }
        guard hasRoom else {
            throw .withoutRoom(
                "\(place) has \(free) bytes free, of which \(minimum) must stay free and other downloads need \(others); make room."
            )
        }
        return Lease(bytes) { [self] returned in
            expected.withLock { expected in
                let left = expected[disk.id, default: 0] - returned
                expected[disk.id] = left > 0 ? left : nil
            }
        }
    }
}
