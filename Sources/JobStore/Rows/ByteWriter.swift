package import JobModel

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

    /// A byte that tells whether there is a value, and the value.
    mutating func optional<Value>(_ value: Value?, _ write: (inout ByteWriter, Value) -> Void) {
        byte(value == nil ? 0 : 1)
        if let value { write(&self, value) }
    }

    mutating func list<Value>(_ values: some Collection<Value>, _ write: (inout ByteWriter, Value) -> Void) {
        number(values.count)
        for value in values { write(&self, value) }
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

    mutating func carried(_ value: Carried) {
        switch value {
        case .success(.inline(let text)):
            byte(0)
            part(text)
        case .success(.file(let blob)):
            byte(1)
            self.blob(blob)
        case .failure(let error):
            byte(2)
            self.error(error)
        }
    }
}

/// A row, or the bytes in one, make no sense.
package struct DamagedRow: Error {
    package init() {}
}

/// Reads what ``ByteWriter`` wrote.
struct ByteReader {
    private let bytes: UnsafeRawBufferPointer
    private var position = 0

    init(_ bytes: UnsafeRawBufferPointer) { self.bytes = bytes }

    var isAtEnd: Bool { position == bytes.count }

    mutating func byte() throws(DamagedRow) -> UInt8 {
        guard position < bytes.count else { throw DamagedRow() }
        defer { position += 1 }
        return bytes[position]
    }

    mutating func number() throws(DamagedRow) -> Int64 {
        var value: UInt64 = 0
        var shift: UInt64 = 0
        while shift < 64 {
            let next = try byte()
            value |= UInt64(next & 0x7F) << shift
            if next < 0x80 { return Int64(bitPattern: value >> 1) ^ -Int64(bitPattern: value & 1) }
            shift += 7
        }
        throw DamagedRow()
    }

    mutating func count() throws(DamagedRow) -> Int { try number().asCount() }

    mutating func time() throws(DamagedRow) -> Timestamp { Timestamp(milliseconds: try number()) }

    /// Whether a value follows.
    mutating func hasValue() throws(DamagedRow) -> Bool {
        switch try byte() {
        case 0: false
        case 1: true
        default: throw DamagedRow()
        }
    }

    mutating func list<Value>(
        _ read: (inout ByteReader) throws(DamagedRow) -> Value
    ) throws(DamagedRow) -> [Value] {
        var values: [Value] = []
        for _ in 0..<(try count()) { values.append(try read(&self)) }
        return values
    }

    mutating func part() throws(DamagedRow) -> UnsafeRawBufferPointer {
        let count = try number()
        guard count >= 0, count <= Int64(bytes.count - position) else { throw DamagedRow() }
        defer { position += Int(count) }
        return UnsafeRawBufferPointer(rebasing: bytes[position..<position + Int(count)])
    }

    mutating func text() throws(DamagedRow) -> String { String(decoding: try part(), as: UTF8.self) }

    mutating func texts() throws(DamagedRow) -> [String] {
        try list { reader throws(DamagedRow) in try reader.text() }
    }

    mutating func blob() throws(DamagedRow) -> BlobReference {
        let blob = BlobReference(life: try number(), number: try number(), size: try number())
        guard blob.life > 0, blob.number > 0, blob.size >= 0 else { throw DamagedRow() }
        return blob
    }

    /// Errors are nested as deep as lists are.
    private static let maximumDepth = 256

    mutating func error() throws(DamagedRow) -> JobError {
        guard let json = try? JSONParser.parse(try part(), maximumDepth: Self.maximumDepth).value else {
            throw DamagedRow()
        }
        return JobError(json: json)
    }

    mutating func carried() throws(DamagedRow) -> Carried {
        switch try byte() {
        case 0: .success(.inline(Array(try part())))
        case 1: .success(.file(try blob()))
        case 2: .failure(try error())
        default: throw DamagedRow()
        }
    }
}

extension Int64 {
    /// This number of a row as a count, which has room to be counted up.
    fileprivate func asCount() throws(DamagedRow) -> Int {
        guard (0...Int64(Int32.max)).contains(self) else { throw DamagedRow() }
        return Int(self)
    }
}

extension Carried {
    package var encoded: [UInt8] {
        var writer = ByteWriter(reserving: Int(size) + 8)
        writer.carried(self)
        return writer.bytes
    }
}

extension StoredValue {
    package var encoded: [UInt8] { Carried.success(self).encoded }
}

/// Values of the present row, which may be damaged.
extension StoredColumns {
    package func owner(_ column: Int32) throws(DamagedRow) -> UInt32 {
        guard let owner = UInt32(exactly: integer(column)) else { throw DamagedRow() }
        return owner
    }

    package func state(_ column: Int32) throws(DamagedRow) -> JobState {
        guard let state = JobState(code: integer(column)) else { throw DamagedRow() }
        return state
    }

    package func count(_ column: Int32) throws(DamagedRow) -> Int { try integer(column).asCount() }

    /// What `read` makes of all bytes of a column.
    func decoded<Value>(
        _ column: Int32, _ read: (inout ByteReader) throws(DamagedRow) -> Value
    ) throws(DamagedRow) -> Value {
        try withBytes(column) { bytes throws(DamagedRow) in
            var reader = ByteReader(bytes)
            let value = try read(&reader)
            guard reader.isAtEnd else { throw DamagedRow() }
            return value
        }
    }

    package func carried(_ column: Int32) throws(DamagedRow) -> Carried? {
        if isNull(column) { return nil }
        return try decoded(column) { reader throws(DamagedRow) in try reader.carried() }
    }

    package func value(_ column: Int32) throws(DamagedRow) -> StoredValue? {
        switch try carried(column) {
        case nil: nil
        case .success(let value): value
        case .failure: throw DamagedRow()
        }
    }
}
