import JobModel

/// A file held open for reading, and what it was then.
final class OpenFile: Sendable {
    let descriptor: Int32
    /// For messages.
    let path: String
    let size: Int64
    let isRegular: Bool
    private let files: FileOperations

    /// Takes over `descriptor`, also where it throws. Blocks.
    init(descriptor: Int32, path: String, files: FileOperations) throws(SystemError) {
        do throws(SystemError) {
            let status = try files.statusOfOpen(descriptor)
            size = status.size
            isRegular = status.isRegular
        } catch {
            files.close(descriptor)
            throw error
        }
        self.descriptor = descriptor
        self.path = path
        self.files = files
    }

    deinit {
        files.close(descriptor)
    }
}

/// A directory held open, so that it stays the same one whatever happens to its path.
final class OpenDirectory: Sendable {
    let descriptor: Int32
    /// For messages and results.
    let path: String
    private let files: FileOperations

    init(descriptor: Int32, path: String, files: FileOperations) {
        self.descriptor = descriptor
        self.path = path
        self.files = files
    }

    deinit {
        files.close(descriptor)
    }
}
