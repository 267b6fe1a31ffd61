/// Keeps files in parts in the database of the jobs, where each daemon that uses it can read them.
///
/// Calls block, and hold one part in memory.
package protocol BlobArchive: Sendable {
    /// Stores a part of a file, in place of an earlier one.
    func put(_ bytes: [UInt8], as part: Int, of blob: BlobReference) throws(StoreError)
    /// The bytes of a part; none where it has none.
    func part(_ part: Int, of blob: BlobReference) throws(StoreError) -> [UInt8]
    /// Copies a file within the database.
    func copy(_ blob: BlobReference, to new: BlobReference) throws(StoreError)
    func remove(_ blobs: [BlobReference]) throws(StoreError)
    /// Removes files of lives that are over to which no row refers; returns their number.
    func removeUnused() throws(StoreError) -> Int
}

extension BlobReference {
    /// The bytes of each part but the last. The tables rely on it.
    package static let partSize = 256 << 10

    package var parts: Int { (Int(size) + Self.partSize - 1) / Self.partSize }
}
