import DeferredKit
import JobModel
import Synchronization

/// An archive in memory.
final class TestArchive: BlobArchive {
    /// By the names of files.
    let files = Mutex<[String: [Int: [UInt8]]]>([:])
    let isBroken = Mutex(false)
    /// Resolved by the first call that fails.
    let failed = Promise<Void, Never>()

    /// The sweeps that have begun.
    let sweeps = AsyncStream.makeStream(of: Void.self)

    private func check() throws(StoreError) {
        guard isBroken.withLock(\.self) else { return }
        failed.succeed(())
        throw StoreError(.write, "The archive is away.")
    }

    func put(_ bytes: [UInt8], as part: Int, of blob: BlobReference) throws(StoreError) {
        try check()
        files.withLock { $0[blob.name, default: [:]][part] = bytes }
    }

    func part(_ part: Int, of blob: BlobReference) throws(StoreError) -> [UInt8] {
        try check()
        return files.withLock { $0[blob.name]?[part] ?? [] }
    }

    func copy(_ blob: BlobReference, to new: BlobReference) throws(StoreError) {
        try check()
        files.withLock { $0[new.name] = $0[blob.name] }
    }

    func remove(_ blobs: [BlobReference]) throws(StoreError) {
        files.withLock { files in for blob in blobs { files[blob.name] = nil } }
    }

    /// One file that is not used.
    func removeUnused() throws(StoreError) -> Int {
        defer { sweeps.continuation.yield() }
        return files.withLock { $0.removeValue(forKey: "1-77") } == nil ? 0 : 1
    }

    var names: [String] { files.withLock { $0.keys.sorted() } }
}
