import JobModel
import SystemPackage

/// The file that an upload sends: open, and as it was when it was opened.
final class UploadFile: Sendable {
    private let file: OpenFile
    private let directory: OpenDirectory
    private let name: String
    private let files: FileOperations

    var size: Int64 { file.status.size }
    var path: String { file.path }

    /// Opens it for a caller who may read it. Blocks, but for no writer of a FIFO and for no device.
    init(_ path: DownloadPath, files: FileOperations, queue: FileQueue) throws(JobError) {
        guard let directory = try TargetDirectory.existing(path, for: .execute, files: files) else {
            throw JobError(path: .noSuchFileOrDirectory, "read", path.absolute())
        }
        guard let opened = try OpenFile(regular: path.name, in: directory, path, files: files, queue: queue) else {
            throw JobError(.invalid, "\"\(path.absolute())\" is no ordinary file; give the path of one.")
        }
        file = opened
        self.directory = directory
        name = path.name
        self.files = files
    }

    /// Reads from `offset` on until `buffer` is full. Blocks.
    func read(at offset: Int64, into buffer: UnsafeMutableRawBufferPointer) throws(JobError) {
        let count: Int
        do throws(Errno) {
            count = try files.fill(buffer, from: file.descriptor, at: offset)
        } catch {
            throw JobError(storage: error, "read", path)
        }
        guard count == buffer.count else { throw changed }
    }

    /// Throws where the file is not what it was when it was opened, or its name is another's by now. Blocks.
    func checkUnchanged() throws(JobError) {
        do throws(Errno) {
            let present = try files.status(directory.descriptor, name)
            if present.identity == file.status.identity, present.size == size,
                present.modifiedAt == file.status.modifiedAt
            {
                return
            }
        } catch {
            guard error == .noSuchFileOrDirectory else { throw JobError(storage: error, "looked at", path) }
        }
        throw changed
    }

    /// Throws where `wanted` is another digest than that of the file.
    func check(_ digest: String, against wanted: String?) throws(JobError) {
        guard let wanted, wanted != digest else { return }
        throw JobError(
            .checksum, "\"\(path)\" has the SHA-256 \(digest) instead of \(wanted); check the file and the checksum.")
    }

    private var changed: JobError {
        JobError(.network, "\"\(path)\" changed while it was sent; try again once it is complete.", retryable: true)
    }
}
