package import JobModel

/// Values, errors and files as they stand in a row.
extension ByteCoder {
    mutating func carried(_ carried: Carried?) throws(DamagedRow) -> Carried {
        var (form, text): (UInt8?, [UInt8]?)
        switch carried {
        case nil: break
        case .success(.inline(let value)): (form, text) = (0, value)
        case .success(.file): form = 1
        case .failure: form = 2
        }
        switch try byte(form) {
        case 0: return .success(.inline(try part(text, { $0 }, { Array($0) })))
        case 1: return .success(.file(try blob(carried?.blob)))
        case 2: return .failure(try error(carried?.error))
        default: throw DamagedRow()
        }
    }

    mutating func blob(_ blob: BlobReference?) throws(DamagedRow) -> BlobReference {
        let blob = BlobReference(
            life: try number(blob?.life), number: try number(blob?.number), size: try number(blob?.size))
        // Sums of the numbers in a damaged row must not overflow.
        let isBounded = (1...1 << 56).contains(blob.number) && (0...1 << 56).contains(blob.size)
        guard blob.life > 0 && isBounded || !isReading else { throw DamagedRow() }
        return blob
    }

    /// Errors are nested as deep as lists are.
    private static let maximumDepth = 256

    mutating func error(_ error: JobError?) throws(DamagedRow) -> JobError {
        try part(error, { $0.json.utf8 }) { bytes throws(DamagedRow) in
            guard let json = try? JSONParser.parse(bytes, maximumDepth: Self.maximumDepth).value else {
                throw DamagedRow()
            }
            return JobError(json: json)
        }
    }
}

extension Carried {
    package var encoded: [UInt8] {
        ByteCoder.bytes { coder throws(DamagedRow) in _ = try coder.carried(self) }
    }
}

extension StoredValue {
    package var encoded: [UInt8] { Carried.success(self).encoded }
}
