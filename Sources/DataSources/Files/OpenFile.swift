import Glibc
import JobModel
import SystemPackage

/// An open file, closed on the file threads when the last reference to it goes away.
final class OpenFile: Sendable {
    let descriptor: Int32
    private let files: FileOperations
    private let queue: FileQueue

    init(_ descriptor: Int32, _ files: FileOperations, closedOn queue: FileQueue) {
        self.descriptor = descriptor
        self.files = files
        self.queue = queue
    }

    deinit {
        queue.start { [files, descriptor] in files.close(descriptor) }
    }
}
