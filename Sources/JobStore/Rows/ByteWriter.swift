import JobModel

/// Writes the parts of a row that no query asks for: whole numbers take as few bytes as they need.
struct ByteWriter {
    private(set) var bytes: [UInt8] = []

    init(reserving capacity: Int) { bytes.reserveCapacity(capacity) }

    mutating func byte(_ value: UInt8) { bytes.append(value) }

    mutating func number(_ value: Int64) {
        // Small ones of either sign are short.
        var rest = UInt64(bitPattern: value << 1 ^ value >> 63)
        if rest < 0x80 { return bytes.append(UInt8(truncatingIfNeeded: rest)) }
        while rest >= 0x80 {
            bytes.append(UInt8(truncatingIfNeeded: rest) | 0x80)
            rest >>= 7
        }
        bytes.append(UInt8(truncatingIfNeeded: rest))
    }

    mutating func number(_ value: Int) { number(Int64(value)) }

    mutating func time(_ value: Timestamp) { number(value.milliseconds) }

    /// Nil where it is not to be written at all; a byte says so.
    mutating func time(_ value: Timestamp?) {
        byte(value == nil ? 0 : 1)
        if let value { time(value) }
    }

    mutating func text(_ value: String) {
        number(value.utf8.count)
        bytes.append(contentsOf: value.utf8)
    }

    mutating func part(_ value: [UInt8]) {
        number(value.count)
        bytes.append(contentsOf: value)
    }

    mutating func blob(_ value: BlobReference) {
        number(value.life)
        number(value.number)
        number(value.size)
    }

    mutating func error(_ value: JobError) { part(value.json.utf8) }

    mutating func value(_ value: StoredValue) {
        switch value {
        case .inline(let text):
            byte(0)
            part(text)
        case .file(let blob):
            byte(1)
            self.blob(blob)
        }
    }

    mutating func carried(_ value: Carried) {
        switch value {
        case .success(let stored): self.value(stored)
        case .failure(let error):
            byte(2)
            self.error(error)
        }
    }
}

/// Reads what ``ByteWriter`` wrote; each part is nil where the bytes are damaged.
struct ByteReader {
    private let bytes: UnsafeRawBufferPointer
    private var position = 0

    init(_ bytes: UnsafeRawBufferPointer) { self.bytes = bytes }

    var isAtEnd: Bool { position == bytes.count }

    mutating func byte() -> UInt8? {
        guard position < bytes.count else { return nil }
        defer { position += 1 }
        return bytes[position]
    }

    mutating func number() -> Int64? {
        var value: UInt64 = 0
        var shift: UInt64 = 0
        while shift < 64, let next = byte() {
            value |= UInt64(next & 0x7F) << shift
            if next < 0x80 { return Int64(bitPattern: value >> 1) ^ -Int64(bitPattern: value & 1) }
            shift += 7
        }
        return nil
    }

    /// A count, which has room to be counted up.
    mutating func count() -> Int? {
        number().flatMap { (0...Int64(Int32.max)).contains($0) ? Int($0) : nil }
    }

    mutating func time() -> Timestamp? { number().map(Timestamp.init(milliseconds:)) }

    /// A time that may be left out.
    mutating func optionalTime() -> (time: Timestamp?, Void)? {
        switch byte() {
        case 0: (nil, ())
        case 1: time().map { ($0, ()) }
        default: nil
        }
    }

    mutating func part() -> UnsafeRawBufferPointer? {
        guard let count = number(), count >= 0, count <= Int64(bytes.count - position) else { return nil }
        defer { position += Int(count) }
        return UnsafeRawBufferPointer(rebasing: bytes[position..<position + Int(count)])
    }

    mutating func text() -> String? { part().map { String(decoding: $0, as: UTF8.self) } }

    mutating func blob() -> BlobReference? {
        guard let life = number(), let own = number(), let size = number(), life > 0, own > 0, size >= 0 else {
            return nil
        }
        return BlobReference(life: life, number: own, size: size)
    }

    /// Errors are nested as deep as lists are.
    private static let maximumDepth = 256

    mutating func error() -> JobError? {
        part().flatMap { try? JSONParser.parse($0, maximumDepth: Self.maximumDepth) }.map(JobError.init(json:))
    }

    mutating func value() -> StoredValue? {
        guard case .success(let value) = carried() else { return nil }
        return value
    }

    mutating func carried() -> Carried? {
        switch byte() {
        case 0: part().map { .success(.inline(Array($0))) }
        case 1: blob().map { .success(.file($0)) }
        case 2: error().map { .failure($0) }
        default: nil
        }
    }
}

extension StoredValue {
    var encoded: [UInt8] {
        var writer = ByteWriter(reserving: Int(size) + 8)
        writer.value(self)
        return writer.bytes
    }

    init?(encoded bytes: UnsafeRawBufferPointer) {
        var reader = ByteReader(bytes)
        guard let value = reader.value(), reader.isAtEnd else { return nil }
        self = value
    }
}
