/// What flows from one link of a chain to the next, without a look at the value.
package enum Carried: Sendable, Hashable {
    case success(StoredValue)
    case failure(JobError)

    /// Bytes that it takes on disk.
    package var size: Int64 {
        switch self {
        case .success(let value): value.size
        case .failure(let error): Int64(error.json.size)
        }
    }

    package var error: JobError? { if case .failure(let error) = self { error } else { nil } }
    package var blob: BlobReference? { if case .success(.file(let blob)) = self { blob } else { nil } }
}

/// A JSON value as text: in the row where it is short, else in a file beside the state.
package enum StoredValue: Sendable, Hashable {
    /// At most `limits.inlineResult` bytes of JSON text.
    case inline([UInt8])
    /// The JSON text is in a file.
    case file(BlobReference)

    /// Bytes of its JSON text.
    package var size: Int64 {
        switch self {
        case .inline(let bytes): Int64(bytes.count)
        case .file(let blob): blob.size
        }
    }

    package var blob: BlobReference? { if case .file(let blob) = self { blob } else { nil } }

    package static let null = StoredValue.inline(Array("null".utf8))
}

/// A file of the blob store: written and synced before anything refers to it, and never changed.
package struct BlobReference: Sendable, Hashable {
    /// The life that wrote it, and a number of its own; together they are its name.
    package let life: Int64
    package let number: Int64
    /// In bytes.
    package let size: Int64

    package init(life: Int64, number: Int64, size: Int64) {
        self.life = life
        self.number = number
        self.size = size
    }

    package var name: String { "\(life)-\(number)" }
}
