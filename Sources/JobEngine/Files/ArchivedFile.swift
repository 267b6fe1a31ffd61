import DataSources
import JobModel
import Synchronization
import SystemPackage

/// A file in an archive, read by the same calls as an open one. It keeps the part that was read last.
final class ArchivedFile: Sendable {
    private struct State {
        var part: (index: Int, bytes: [UInt8])?
        var failure: StoreError?
    }

    private let blob: BlobReference
    private let archive: any BlobArchive
    private let state = Mutex(State())

    init(_ blob: BlobReference, in archive: any BlobArchive) { (self.blob, self.archive) = (blob, archive) }

    /// What made a call fail.
    var failure: StoreError? { state.withLock(\.failure) }

    /// Calls that read this file, whatever descriptor they are given.
    var operations: FileOperations {
        var files = FileOperations.real
        files.readAt = { [self] _, offset, buffer throws(Errno) in try read(at: Int(offset), into: buffer) }
        return files
    }

    /// Reads up to the end of a part; returns 0 at the end of the file.
    private func read(at offset: Int, into buffer: UnsafeMutableRawBufferPointer) throws(Errno) -> Int {
        let index = offset / BlobReference.partSize
        return try state.withLock { (state) throws(Errno) in
            do throws(StoreError) {
                if state.part?.index != index { state.part = (index, try archive.part(index, of: blob)) }
            } catch {
                state.failure = error
                throw .ioError
            }
            let bytes = (state.part?.bytes ?? []).dropFirst(offset % BlobReference.partSize).prefix(buffer.count)
            buffer.copyBytes(from: bytes)
            return bytes.count
        }
    }
}
