import CLinux
import DataSources
import Dispatch
import Glibc
import JobModel
import SystemPackage

/// The directory of bodies that are too large for a result: one file for each job and link. Its calls block.
///
/// It is opened once, so that it stays the same one whatever happens to its path.
final class BodyDirectory: Sendable {
    private let path: String
    private let files = FileOperations.real
    /// Nil where it could not be opened; then nothing is stored in it either.
    let opened: OpenDirectory?

    init(path: String) {
        self.path = path
        let files = files
        opened = (try? files.openDirectory(path)).map { OpenDirectory(descriptor: $0, path: path, files: files) }
    }

    /// The path of the large body of a link's result.
    func file(of job: JobID, link: Int) -> String { "\(path)/\(Self.name(job, link))" }

    private static func name(_ job: JobID, _ link: Int) -> String { "\(job)-\(link)" }

    /// The jobs that have a body here, in no order.
    func jobs() -> Set<JobID> {
        // A descriptor of its own, as closing the listing closes it.
        guard let opened, let descriptor = try? files.openBeneath(opened.descriptor, ".", O_RDONLY | O_DIRECTORY, 0)
        else { return [] }
        guard let directory = fdopendir(descriptor) else {
            files.close(descriptor)
            return []
        }
        defer { closedir(directory) }
        var jobs: Set<JobID> = []
        while let entry = readdir(directory) {
            let name = String(cString: deferd_entry_name(entry))
            let parts = name.split(separator: "-")
            if parts.count == 2, let job = JobID(parts[0]), Int(parts[1]) != nil { jobs.insert(job) }
        }
        return jobs
    }

    /// Bytes that are free on its disk; nil where that is not known.
    var freeBytes: Int64? { opened.flatMap { files.freeBytes($0.descriptor) } }

    /// Removes the bodies of a job, up to link `last`.
    func remove(_ job: JobID, upTo last: Int) {
        guard let opened else { return }
        // Most links have none.
        for link in 0...last { try? files.unlink(opened.descriptor, Self.name(job, link)) }
    }

    /// `length` bytes of a body from `offset` on, as far as there are.
    func read(_ job: JobID, link: Int, offset: Int, length: Int) throws(Errno) -> ResultPart {
        guard let opened else { throw Errno.noSuchFileOrDirectory }
        let file = try files.openBeneath(opened.descriptor, Self.name(job, link), O_RDONLY | O_NOFOLLOW, 0)
        defer { files.close(file) }
        let size = Int(clamping: try files.statusOfOpen(file).size)
        let length = offset < size ? min(length, size - offset) : 0
        if length > 0 { try files.seek(file, Int64(offset)) }
        var failure: Errno?
        let bytes = [UInt8](unsafeUninitializedCapacity: length) { buffer, count in
            do throws(Errno) {
                while count < length {
                    let read = try files.read(
                        file, UnsafeMutableRawBufferPointer(rebasing: UnsafeMutableRawBufferPointer(buffer)[count...]))
                    if read <= 0 { break }
                    count += read
                }
            } catch {
                failure = error
            }
        }
        if let failure { throw failure }
        return ResultPart(bytes: bytes, size: size)
    }
}
