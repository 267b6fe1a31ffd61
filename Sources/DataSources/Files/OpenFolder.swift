import JobModel

/// A folder held open, so that it stays the same one whatever happens to its path.
final class OpenFolder: Sendable {
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
