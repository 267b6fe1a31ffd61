import CLinux
import DataSources
import Glibc
package import JobModel
import Logging
import Synchronization
import SystemPackage

/// Keeps values that are too long for a row in files of one directory, each named by the number of the life that wrote it and
/// a number of its own. A file is synced before a row refers to it, and never changes. Calls block.
///
/// With an archive, the files of values are only there, so that no daemon has to remove copies that others made. The
/// directory has the files that sources write themselves, until they are archived.
///
/// The directory is opened once, so that it stays the same even if its path changes.
package final class BlobStore: Sendable {
    package let path: String
    private let present: Atomic<Int64>
    let directory: OpenFile
    private let archive: (any BlobArchive)?
    private let files = FileOperations.real
    /// Lower numbers are those of runs, whose files have the output of their programs.
    private let lastNumber = Atomic<Int64>(1 << 40)
    /// Files to remove once a backup is complete; nil if none is being made.
    private let held = Mutex<[String]?>(nil)

    package init(path: String, life: Int64, archive: (any BlobArchive)? = nil) throws(StoreError) {
        self.path = path
        present = Atomic(life)
        self.archive = archive
        do throws(Errno) { directory = OpenFile(try files.openDirectory(path), .real) } catch {
            throw StoreError(.read, "The directory \"\(path)\" cannot be opened: \(error).")
        }
    }

    /// The life of new files.
    package var life: Int64 { present.load(ordering: .relaxed) }

    /// Begins another life, as others took this one to be over.
    func begin(life: Int64) { present.store(life, ordering: .relaxed) }

    func newFile(size: Int = 0) -> BlobReference {
        BlobReference(life: life, number: lastNumber.add(1, ordering: .relaxed).newValue, size: Int64(size))
    }

    /// A file with its present size; 0 if there is none. Blocks.
    func measured(_ blob: BlobReference) -> BlobReference {
        let size = try? files.status(directory.descriptor, blob.name).size
        return BlobReference(life: blob.life, number: blob.number, size: size ?? 0)
    }

    /// The path of a file that a source writes by itself.
    func path(of blob: BlobReference) -> String { "\(path)/\(blob.name)" }

    var isArchived: Bool { archive != nil }

    /// The bytes free on its disk; nil if unknown.
    package var freeBytes: Int64? { files.freeBytes(directory.descriptor) }

    func write(_ bytes: [UInt8]) throws(JobError) -> BlobReference {
        let blob = newFile(size: bytes.count)
        if let archive {
            try Self.store(blob, in: archive) { () throws(StoreError) in
                for part in 0..<blob.parts {
                    let rest = bytes[(part * BlobReference.partSize)...]
                    try archive.put(Array(rest.prefix(BlobReference.partSize)), as: part, of: blob)
                }
            }
            return blob
        }
        do throws(Errno) {
            try write(bytes, as: blob.name)
        } catch {
            throw failure(error, "A value of \(bytes.count) bytes cannot be written")
        }
        return blob
    }

    private func write(_ bytes: [UInt8], as name: String) throws(Errno) {
        let (directory, temporary) = (directory.descriptor, name + ".part")
        let file = try files.openBeneath(directory, temporary, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW, 0o600)
        do throws(Errno) {
            defer { files.close(file) }
            try files.write(bytes, to: file)
            try files.sync(file)
            try files.rename(directory, temporary, name, true)
            try files.sync(directory)
        } catch {
            try? files.unlink(directory, temporary)
            throw error
        }
    }

    /// Moves a file that a source has written to the archive, if there is one. With `keepsFile`, the directory keeps it until
    /// ``removeLocally(_:)``. If the source may still write it, its present bytes are stored as another file, `copy`.
    func archive(
        _ blob: BlobReference, as copy: BlobReference? = nil, keepsFile: Bool = false
    ) throws(JobError) {
        guard let archive, blob.size > 0 else { return }
        let copy = copy ?? blob
        try Self.store(copy, in: archive) { () throws(StoreError) in
            for part in 0..<copy.parts {
                let bytes = try read(blob, offset: part * BlobReference.partSize, length: BlobReference.partSize).bytes
                try archive.put(bytes, as: part, of: copy)
            }
        }
        if !keepsFile { removeLocally(blob) }
    }

    /// Stores a file in an archive, or nothing of it.
    private static func store(
        _ blob: BlobReference, in archive: any BlobArchive, _ body: () throws(StoreError) -> Void
    ) throws(JobError) {
        do throws(StoreError) { try body() } catch {
            // What is left, a later start sweeps away.
            try? archive.remove([blob])
            throw JobError(
                .storage, "A file of \(blob.size) bytes cannot be stored: \(error.message)", retryable: true)
        }
    }

    /// Removes what the directory still has of an archived file.
    func removeLocally(_ blob: BlobReference) {
        if isArchived { try? files.unlink(directory.descriptor, blob.name) }
    }

    /// Gives a file a second name, so that it outlives the job that it was written for.
    func link(_ blob: BlobReference) throws(JobError) -> BlobReference {
        let new = newFile(size: Int(blob.size))
        if let archive {
            try Self.store(new, in: archive) { () throws(StoreError) in try archive.copy(blob, to: new) }
            return new
        }
        do throws(Errno) {
            try files.link(directory.descriptor, blob.name, new.name)
            try files.sync(directory.descriptor)
        } catch {
            throw failure(error, "The file \(blob.name) cannot be linked")
        }
        return new
    }

    /// At most `length` bytes from `offset` on.
    package func read(_ blob: BlobReference, offset: Int = 0, length: Int = .max) throws(StoreError) -> ResultPart {
        let part = try reading(blob) { (file, size, files) throws(Errno) in
            guard size >= blob.size else { throw Errno.ioError }
            return try ResultPart(of: file, size: Int(blob.size), offset: offset, length: length, by: files)
        }
        guard let part else { throw failure(.noSuchFileOrDirectory) }
        return part
    }

    /// At most `length` bytes of the output of a program from `offset` on; nothing if it wrote nothing, or is running at another
    /// daemon.
    package func output(
        _ blob: BlobReference, from offset: Int64, length: Int, isOver: Bool
    ) throws(StoreError) -> OutputPiece {
        try reading(blob) { (file, _, files) throws(Errno) in
            try OutputReader(file, files).piece(at: offset, length: length, isOver: isOver)
        } ?? OutputPiece(at: offset)
    }

    /// Runs `body` with the file in the directory or, if it is not there, in the archive, with its size and the calls that
    /// read it; returns nil if there is none.
    private func reading<Value>(
        _ blob: BlobReference, _ body: (Int32, _ size: Int64, FileOperations) throws(Errno) -> Value
    ) throws(StoreError) -> Value? {
        var archived: ArchivedFile?
        do throws(Errno) {
            if let file = try open(blob.name) {
                return try body(file.descriptor, files.statusOfOpen(file.descriptor).size, files)
            }
            archived = archive.map { ArchivedFile(blob, in: $0) }
            return try archived.map { (archived) throws(Errno) in try body(-1, blob.size, archived.operations) }
        } catch {
            guard let archived else { throw failure(error) }
            throw archived.failure
                ?? StoreError(.read, "The database does not have all of it; retry the job.", isLasting: true)
        }
    }

    private func open(_ name: String) throws(Errno) -> OpenFile? {
        do throws(Errno) {
            return OpenFile(try files.openBeneath(directory.descriptor, name, O_RDONLY | O_NOFOLLOW, 0), files)
        } catch  where error == .noSuchFileOrDirectory {
            return nil
        }
    }

    private func failure(_ error: Errno) -> StoreError { StoreError(.read, "\(error); look at the disk of \(path).") }

    private func failure(_ error: Errno, _ action: String) -> JobError {
        JobError(
            .storage, "\(action): \(error); look at the disk of \"\(path)\", then retry the job.", retryable: true)
    }

    /// The complete text of a value.
    func text(of value: StoredValue) throws(JobError) -> [UInt8] {
        switch value {
        case .inline(let text): return text
        case .file(let blob):
            do throws(StoreError) { return try read(blob).bytes } catch {
                throw JobError(
                    .storage, "A value of \(blob.size) bytes cannot be read: \(error.message)",
                    retryable: error.mayPass)
            }
        }
    }

    func remove(_ blobs: [BlobReference]) {
        remove(blobs.map(\.name))
        // What is left, a later start sweeps away.
        try? archive?.remove(blobs)
    }

    private func remove(_ names: [String]) {
        let isHeld = held.withLock { held in
            held?.append(contentsOf: names)
            return held != nil
        }
        if isHeld { return }
        for name in names { try? files.unlink(directory.descriptor, name) }
    }

    /// Removes nothing while `body` runs. If the daemon is killed meanwhile, the next one sweeps the files away.
    func keepingAll<Value>(while body: () -> Value) -> Value {
        held.withLock { $0 = [] }
        let value = body()
        remove(held.withLock { exchange(&$0, with: nil) } ?? [])
        return value
    }

    // MARK: - Sweeping

    /// Removes files of earlier lives to which no row refers. Archives the others, such as the output of
    /// a run that another daemon took over. A row may refer to a file of this life at any moment.
    func sweep(_ reader: any JobReader) throws(StoreError) {
        let life = life
        _ = try archive?.removeUnused()
        var found = names(before: life)
        guard !found.isEmpty else { return }
        var after: BlobReference?
        repeat {
            let used = try reader.blobs(beforeLife: life, after: after, limit: 1000)
            for blob in used where found.remove(blob.name) != nil { try? archive(measured(blob)) }
            after = used.count == 1000 ? used.last : nil
        } while after != nil
        remove(Array(found))
    }

    private func names(before life: Int64) -> Set<String> {
        // Closing the listing closes its descriptor.
        guard let file = try? files.openBeneath(directory.descriptor, ".", O_RDONLY | O_DIRECTORY, 0),
            let listing = fdopendir(file)
        else { return [] }
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
