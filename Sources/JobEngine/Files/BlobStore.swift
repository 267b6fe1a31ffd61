import CLinux
package import DataSources
import Glibc
package import JobModel
import Logging
import Synchronization
package import SystemPackage

/// Keeps values that are too long for a row in files of one directory, each named by the number of the life that wrote it and
/// a number of its own. A file is synced before a row refers to it, and never changes. Calls block.
///
/// The directory is opened once, so that it stays the same even if its path changes.
package final class BlobStore: Sendable {
    package let path: String
    package let life: Int64
    /// Nil if it could not be opened; then nothing can be stored in it.
    let directory: OpenFile?
    private let files: FileOperations
    /// Lower numbers are those of runs, whose files have the output of their programs.
    private let lastNumber = Atomic<Int64>(1 << 40)
    /// Files to remove once a backup is complete; nil if none is being made.
    private let held = Mutex<[String]?>(nil)

    package init(path: String, life: Int64, files: FileOperations = .real) {
        self.path = path
        self.life = life
        self.files = files
        directory = (try? files.openDirectory(path)).map { OpenFile($0, files) }
    }

    /// A new number for a file of this life.
    func nextNumber() -> Int64 { lastNumber.add(1, ordering: .relaxed).newValue }

    /// A file with its present size; 0 if there is none. Blocks.
    func measured(_ blob: BlobReference) -> BlobReference {
        let size = try? directory.map { (directory) throws(Errno) in
            try files.status(directory.descriptor, blob.name).size
        }
        return BlobReference(life: blob.life, number: blob.number, size: size ?? 0)
    }

    /// The path of a file of this life that a source writes by itself.
    func path(of number: Int64) -> String { "\(path)/\(life)-\(number)" }

    /// The bytes free on its disk; nil if unknown.
    package var freeBytes: Int64? { directory.flatMap { files.freeBytes($0.descriptor) } }

    /// Writes and syncs a file.
    func write(_ bytes: [UInt8]) throws(JobError) -> BlobReference {
        let blob = BlobReference(life: life, number: nextNumber(), size: Int64(bytes.count))
        do throws(Errno) {
            try write(bytes, as: blob.name)
        } catch {
            throw JobError(
                .storage,
                "A value of \(bytes.count) bytes cannot be written to \"\(path)\": \(error); look at its disk, "
                    + "then retry the job.", retryable: true)
        }
        return blob
    }

    private func write(_ bytes: [UInt8], as name: String) throws(Errno) {
        guard let directory = directory?.descriptor else { throw Errno.noSuchFileOrDirectory }
        let temporary = name + Self.unfinished
        let file = try files.openBeneath(directory, temporary, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW, 0o600)
        do throws(Errno) {
            defer { files.close(file) }
            try files.write(bytes, to: file)
            try files.sync(file)
            try files.rename(directory, temporary, name)
            try files.sync(directory)
        } catch {
            try? files.unlink(directory, temporary)
            throw error
        }
    }

    /// Gives a file a second name, so that it outlives the job that it was written for.
    func link(_ blob: BlobReference) throws(JobError) -> BlobReference {
        let new = BlobReference(life: life, number: nextNumber(), size: blob.size)
        do throws(Errno) {
            guard let directory = directory?.descriptor else { throw Errno.noSuchFileOrDirectory }
            try files.link(directory, blob.name, new.name)
            try files.sync(directory)
        } catch {
            throw JobError(
                .storage,
                "The file \"\(path)/\(blob.name)\" cannot be linked: \(error); look at its disk, then retry the job.",
                retryable: true)
        }
        return new
    }

    private static let unfinished = ".part"

    /// At most `length` bytes from `offset` on.
    package func read(_ blob: BlobReference, offset: Int = 0, length: Int = .max) throws(Errno) -> ResultPart {
        guard let directory else { throw Errno.noSuchFileOrDirectory }
        let file = try files.openBeneath(directory.descriptor, blob.name, O_RDONLY | O_NOFOLLOW, 0)
        defer { files.close(file) }
        let size = Int(clamping: try files.statusOfOpen(file).size)
        return try ResultPart(of: file, size: size, offset: offset, length: length, by: files)
    }

    /// At most `length` bytes of the output of a program from `offset` on; nothing if it wrote nothing.
    package func output(
        _ blob: BlobReference, from offset: Int64, length: Int, isOver: Bool
    ) throws(Errno) -> OutputPiece {
        guard let directory else { throw Errno.noSuchFileOrDirectory }
        let file: Int32
        do throws(Errno) {
            file = try files.openBeneath(directory.descriptor, blob.name, O_RDONLY | O_NOFOLLOW, 0)
        } catch  where error == .noSuchFileOrDirectory {
            return OutputPiece(at: offset)
        }
        defer { files.close(file) }
        return try OutputReader(file, files).piece(at: offset, length: length, isOver: isOver)
    }

    /// The complete text of a value.
    func text(of value: StoredValue) throws(JobError) -> [UInt8] {
        switch value {
        case .inline(let text): return text
        case .file(let blob):
            do throws(Errno) {
                let bytes = try read(blob).bytes
                guard bytes.count == blob.size else { throw Errno.ioError }
                return bytes
            } catch {
                throw JobError(
                    .storage, "A value in \"\(path)/\(blob.name)\" cannot be read: \(error); look at its disk.",
                    retryable: true)
            }
        }
    }

    func remove(_ blobs: [BlobReference]) { remove(blobs.map(\.name)) }

    private func remove(_ names: [String]) {
        let isHeld = held.withLock { held in
            held?.append(contentsOf: names)
            return held != nil
        }
        guard !isHeld, let directory else { return }
        for name in names { try? files.unlink(directory.descriptor, name) }
    }

    /// Removes nothing until ``release()``. If the daemon is killed before, the next one sweeps the files away.
    func hold() { held.withLock { $0 = [] } }

    func release() {
        let names = held.withLock { held in
            defer { held = nil }
            return held ?? []
        }
        remove(names)
    }

    // MARK: - Sweeping

    /// Removes files of earlier lives to which no row refers; returns their number. A row may refer to a file of this life at any
    /// moment.
    func sweep(_ reader: any JobReader) throws(StoreError) -> Int {
        var found = names()
        var after: BlobReference?
        repeat {
            let used = try reader.blobs(beforeLife: life, after: after, limit: 1000)
            for blob in used { found.remove(blob.name) }
            after = used.count == 1000 ? used.last : nil
        } while after != nil
        remove(Array(found))
        return found.count
    }

    /// The names of files of earlier lives.
    private func names() -> Set<String> {
        // Closing the listing closes its descriptor.
        guard let directory, let file = try? files.openBeneath(directory.descriptor, ".", O_RDONLY | O_DIRECTORY, 0)
        else { return [] }
        guard let listing = fdopendir(file) else {
            files.close(file)
            return []
        }
        defer { closedir(listing) }
        var names: Set<String> = []
        while let entry = readdir(listing) {
            let name = String(cString: deferd_entry_name(entry))
            let parts = name.split(separator: "-", maxSplits: 1)
            if parts.count == 2, let written = Int64(parts[0]), written < life { names.insert(name) }
        }
        return names
    }
}
