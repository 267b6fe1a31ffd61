import JobModel

/// The room on the disk of a download, of which `downloads.minimumFree` is left to others. All calls block.
extension DownloadTarget {
    private var minimum: Int64 { Int64(transfer.settings.downloads.minimumFree) }

    /// Postpones a download if its disk has little room left; fails if it never can have more.
    func checkRoomToBegin() throws(JobError) {
        guard minimum > 0, let disk, disk.free < minimum else { return }
        try checkSize(of: disk, for: 0, "The disk of \"\(path.directory)\"")
        throw .withoutRoom(
            "\"\(path.directory)\" has \(disk.free) bytes free, and downloads wait below \(minimum); make room.")
    }

    /// Ends a running download below half of the minimum. Its bytes are removed, which makes room again.
    func checkRoomToGoOn() throws(JobError) {
        guard minimum > 1, let free = disk?.free, free < minimum / 2 else { return }
        throw JobError(
            .storage,
            "\"\(path.directory)\" has \(free) bytes free, and downloads end below \(minimum / 2); make room.",
            retryable: true)
    }

    /// Sets the bytes that are still expected aside, so that running downloads together do not fill their disk; throws
    /// if they are not there.
    func leaseRoom(_ bytes: Int64) throws(JobError) -> Lease? {
        guard minimum > 0, bytes > 0, let disk else { return nil }
        let place = "The file is \(bytes) bytes long, and the disk of \"\(path.directory)\""
        try checkSize(of: disk, for: bytes, place)
        return try transfer.shared.expected.lease(bytes, of: disk.id, within: disk.free - minimum) { others in
            .withoutRoom(
                "\(place) has \(disk.free) bytes free, of which \(minimum) must stay free and other downloads need \(others); make room."
            )
        }
    }

    private func checkSize(of disk: FileOperations.Disk, for bytes: Int64, _ place: String) throws(JobError) {
        guard bytes > disk.size - minimum else { return }
        throw JobError(
            .storage,
            "\(place) has \(disk.size) bytes, of which \(minimum) must stay free; download it to a larger disk.")
    }
}
