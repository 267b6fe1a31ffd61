import JobModel
import Synchronization

/// The file for a response body that is too long for a row.
final class KeptBody: Sendable {
    let file: BlobReference
    private let kept = Mutex<BlobReference?>(nil)

    init(_ blobs: BlobStore) { file = blobs.newFile() }

    /// Nil if the source wrote none.
    var reference: BlobReference? { kept.withLock(\.self) }

    func keep(_ size: Int64) {
        kept.withLock { $0 = BlobReference(life: file.life, number: file.number, size: size) }
    }
}
