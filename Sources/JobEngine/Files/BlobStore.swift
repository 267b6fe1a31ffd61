import DataSources
package import Dispatch
import FoundationEssentials
import Glibc
package import JobModel
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
    /// Backups and removals follow each other: no file is removed while rows that name it are copied.
    package let removals = DispatchQueue(label: "deferd.files", qos: .utility)

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

    // MARK: - Writing

    func write(_ bytes: [UInt8]) throws(JobError) -> BlobReference {
        let blob = newFile(size: bytes.count)
        try storing(blob) { (archive) throws(StoreError) in
            for part in 0..<blob.parts {
                try archive.put(
                    Array(bytes[(part * BlobReference.partSize)...].prefix(BlobReference.partSize)), as: part, of: blob)
            }
        } inDirectory: { (directory) throws(Errno) in
            let file = try files.openBeneath(directory, blob.name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, 0o600)
            defer { files.close(file) }
            try files.write(bytes, to: file)
            try files.sync(file)
        }
        return blob
    }

    /// Takes over a file on the same disk.
    func adopt(_ path: String) throws(StoreError) -> BlobReference {
        let blob = newFile()
        guard renameat(AT_FDCWD, path, directory.descriptor, blob.name) == 0 else {
            throw failure(Errno(rawValue: errno))
        }
        return measured(blob)
    }

    /// Gives a file a second name, so that it outlives the job that it was written for.
    func link(_ blob: BlobReference) throws(JobError) -> BlobReference {
        let new = newFile(size: Int(blob.size))
        try storing(new) { (archive) throws(StoreError) in
            try archive.copy(blob, to: new)
        } inDirectory: { (directory) throws(Errno) in
            try files.link(directory, blob.name, new.name)
        }
        return new
    }

    /// Moves a file that a source has written to the archive, if there is one. With `keepsFile`, the directory keeps it until
    /// ``removeLocally(_:)``. If the source may still write it, its present bytes are stored as another file, `copy`.
    func archive(
        _ blob: BlobReference, as copy: BlobReference? = nil, keepsFile: Bool = false
    ) throws(JobError) {
        guard isArchived, blob.size > 0 else { return }
        let copy = copy ?? blob
        try storing(copy) { (archive) throws(StoreError) in
            for part in 0..<copy.parts {
                let bytes = try read(blob, offset: part * BlobReference.partSize, length: BlobReference.partSize)
                try archive.put(bytes, as: part, of: copy)
            }
        }
        if !keepsFile { removeLocally(blob) }
    }

    /// Stores a new file in the archive, or else in the directory, or nothing of it.
    private func storing(
        _ blob: BlobReference, inArchive: (any BlobArchive) throws(StoreError) -> Void,
        inDirectory: (Int32) throws(Errno) -> Void = { _ in }
    ) throws(JobError) {
        do throws(StoreError) {
            if let archive { return try inArchive(archive) }
            try calling { () throws(Errno) in
                try inDirectory(directory.descriptor)
                try files.sync(directory.descriptor)
            }
        } catch {
            // A later start sweeps away what is left. The directory may have the only copy of an archived file.
            if let archive { try? archive.remove([blob]) } else { try? files.unlink(directory.descriptor, blob.name) }
            throw JobError(
                .storage, "A file of \(blob.size) bytes cannot be stored: \(error.message)", retryable: true)
        }
    }

    /// Removes what the directory still has of an archived file.
    func removeLocally(_ blob: BlobReference) {
        if isArchived { try? files.unlink(directory.descriptor, blob.name) }
    }

    // MARK: - Reading

    /// At most `length` bytes from `offset` on.
    package func read(_ blob: BlobReference, offset: Int = 0, length: Int = .max) throws(StoreError) -> [UInt8] {
        // A damaged row may tell any size.
        guard blob.size >= 0 else { throw Self.damage }
        let start = min(offset, Int(blob.size))
        let count = min(length, Int(blob.size) - start)
        guard let bytes = try load(blob, count, from: Int64(start)), bytes.count == count else { throw Self.damage }
        return bytes
    }

    /// At most `length` bytes of the output of a program from `offset` on; nothing if it wrote nothing, or is running at another
    /// daemon.
    package func output(
        _ blob: BlobReference, from offset: Int64, length: Int, isOver: Bool
    ) throws(StoreError) -> OutputPiece {
        let reader = OutputReader(damage: Self.damage) { [self] (count, offset) throws(StoreError) in
            try load(blob, count, from: offset) ?? []
        }
        return try reader.piece(at: offset, length: length, isOver: isOver)
    }

    private static let damage = StoreError(.read, "A part of it is missing; retry the job.", isLasting: true)

    /// So many bytes of a file in the directory or, if it is not there, in the archive; fewer at its end, nil if there is none.
    private func load(_ blob: BlobReference, _ count: Int, from offset: Int64) throws(StoreError) -> [UInt8]? {
        do throws(Errno) {
            let file = try files.openBeneath(directory.descriptor, blob.name, O_RDONLY | O_NOFOLLOW, 0)
            defer { files.close(file) }
            let rest = max(0, try files.statusOfOpen(file).size - offset)
            return try files.read(min(count, Int(rest)), from: file, at: offset)
        } catch  where error != .noSuchFileOrDirectory {
            throw failure(error)
        } catch {
            guard let archive else { return nil }
            var bytes: [UInt8] = []
            while bytes.count < count {
                let (index, start) = (Int(offset) + bytes.count).quotientAndRemainder(
                    dividingBy: BlobReference.partSize)
                let part = try archive.part(index, of: blob)
                guard start < part.count else { break }
                bytes += part[start...].prefix(count - bytes.count)
            }
            return bytes
        }
    }

    private func calling<Value>(_ body: () throws(Errno) -> Value) throws(StoreError) -> Value {
        do throws(Errno) { return try body() } catch { throw failure(error) }
    }

    private func failure(_ error: Errno) -> StoreError { StoreError(.read, "\(error); look at the disk of \(path).") }

    // MARK: - Removing

    /// Removes files soon, without waiting. What is left, a later start sweeps away.
    package func remove(_ blobs: [BlobReference]) {
        removals.async { [self] in
            for blob in blobs { try? files.unlink(directory.descriptor, blob.name) }
            try? archive?.remove(blobs)
        }
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
        removals.async { [self, found] in
            for name in found { try? files.unlink(directory.descriptor, name) }
        }
    }

    private func names(before life: Int64) -> Set<String> {
        let names = (try? FileManager.default.contentsOfDirectory(atPath: path)) ?? []
        return Set(
            names.filter { name in
                let parts = name.split(separator: "-", maxSplits: 1)
                return parts.count == 2 && Int64(parts[0]).map { $0 < life } == true
            })
    }
}
