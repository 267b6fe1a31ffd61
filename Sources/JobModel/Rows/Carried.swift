/// The outcome that one link passes to the next; its value is not parsed.
package enum Carried: Sendable, Hashable {
    case success(StoredValue)
    case failure(JobError)

    /// The size on disk, in bytes.
    package var size: Int64 {
        switch self {
        case .success(let value): value.size
        case .failure(let error): Int64(error.json.size)
        }
    }

    package var error: JobError? { if case .failure(let error) = self { error } else { nil } }
    package var blob: BlobReference? { if case .success(.file(let blob)) = self { blob } else { nil } }
}

/// A JSON value as text: in the row if it is short, otherwise in a file beside the state.
package enum StoredValue: Sendable, Hashable {
    /// At most `limits.inlineResult` bytes of JSON text.
    case inline([UInt8])
    case file(BlobReference)

    /// The size of the JSON text, in bytes.
    package var size: Int64 {
        switch self {
        case .inline(let bytes): Int64(bytes.count)
        case .file(let blob): blob.size
        }
    }

    package var blob: BlobReference? { if case .file(let blob) = self { blob } else { nil } }

    package static let null = StoredValue.inline(Array("null".utf8))
}

/// A file of the blob store, written and synced before anything refers to it, and never changed.
package struct BlobReference: Sendable, Hashable {
    /// The daemon's life that wrote it; with the number it forms the file's name.
    package let life: Int64
    package let number: Int64
    package let size: Int64

    package init(life: Int64, number: Int64, size: Int64) {
        self.life = life
        self.number = number
        self.size = size
    }

    package var name: String { "\(life)-\(number)" }
}
