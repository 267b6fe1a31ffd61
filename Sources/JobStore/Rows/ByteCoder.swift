import JobModel

/// Writes the parts of a row that no query asks for, and reads them, by one description of each value.
///
/// A coder that writes returns the values that it is given. One that reads takes no notice of them.
struct ByteCoder {
    /// The bytes to read; nil where the coder writes.
    private let input: UnsafeRawBufferPointer?
    private var position = 0
    /// The bytes written.
    private var output: [UInt8] = []

    init(reading input: UnsafeRawBufferPointer) { self.input = input }

    /// The bytes of all that `write` passes.
    static func bytes(_ write: (inout ByteCoder) throws(DamagedRow) -> Void) -> [UInt8] {
        var coder = ByteCoder()
        coder.output.reserveCapacity(64)
        do { try write(&coder) } catch { preconditionFailure("Only bytes that are read can be damaged.") }
        return coder.output
    }

    private init() { input = nil }

    var isReading: Bool { input != nil }
    var isAtEnd: Bool { position == input?.count }

    mutating func byte(_ value: UInt8?) throws(DamagedRow) -> UInt8 {
        if let value, input == nil {
            output.append(value)
            return value
        }
        guard let input, position < input.count else { throw DamagedRow() }
        defer { position += 1 }
        return input[position]
    }

    /// A whole number, which takes as few bytes as it needs.
    mutating func number(_ value: Int64?) throws(DamagedRow) -> Int64 {
        if let value, input == nil {
            write(value)
            return value
        }
        var (read, shift): (UInt64, UInt64) = (0, 0)
        while shift < 64 {
            let next = try byte(nil)
            read |= UInt64(next & 0x7F) << shift
            if next < 0x80 { return Int64(bitPattern: read >> 1) ^ -Int64(bitPattern: read & 1) }
            shift += 7
        }
        throw DamagedRow()
    }

    private mutating func write(_ number: Int64) {
        // Small ones of either sign are short.
        var rest = UInt64(bitPattern: number << 1 ^ number >> 63)
        while rest >= 0x80 {
            output.append(UInt8(truncatingIfNeeded: rest) | 0x80)
            rest >>= 7
        }
        output.append(UInt8(truncatingIfNeeded: rest))
    }

    /// A value of which `bytes` makes bytes, and that `read` makes of them, behind their number.
    mutating func part<Value, Bytes: Collection<UInt8>>(
        _ value: Value?, _ bytes: (Value) -> Bytes,
        _ read: (UnsafeRawBufferPointer) throws(DamagedRow) -> Value
    ) throws(DamagedRow) -> Value {
        if let value, input == nil {
            let bytes = bytes(value)
            write(Int64(bytes.count))
            output.append(contentsOf: bytes)
            return value
        }
        let count = try number(nil)
        guard let input, (0...Int64(input.count - position)).contains(count) else { throw DamagedRow() }
        defer { position += Int(count) }
        return try read(UnsafeRawBufferPointer(rebasing: input[position..<position + Int(count)]))
    }

    mutating func text(_ value: String?) throws(DamagedRow) -> String {
        try part(value, { $0.utf8 }, { String(decoding: $0, as: UTF8.self) })
    }

    mutating func time(_ value: Timestamp?) throws(DamagedRow) -> Timestamp {
        Timestamp(milliseconds: try number(value?.milliseconds))
    }

    mutating func count(_ value: Int?) throws(DamagedRow) -> Int {
        let number = try number(value.map(Int64.init))
        return isReading ? try number.asCount() : Int(number)
    }

    /// Bytes a second; nil for none of its own.
    mutating func byteRate(_ rate: Int?) throws(DamagedRow) -> Int? {
        guard try has(rate) else { return nil }
        let rate = try number(rate.map(Int64.init))
        guard 0...1 << 50 ~= rate || !isReading else { throw DamagedRow() }
        return Int(rate)
    }

    mutating func flag(_ value: Bool?) throws(DamagedRow) -> Bool {
        switch try byte(value.map { $0 ? 1 : 0 }) {
        case 0: false
        case 1: true
        default: throw DamagedRow()
        }
    }

    /// A byte that tells whether there is a value, which follows.
    mutating func has(_ value: (some Any)?) throws(DamagedRow) -> Bool { try flag(value != nil) }

    mutating func list<Value>(
        _ values: [Value]?, _ pass: (inout ByteCoder, Value?) throws(DamagedRow) -> Value
    ) throws(DamagedRow) -> [Value] {
        let count = try count(values?.count)
        if let values, !isReading {
            for value in values { _ = try pass(&self, value) }
            return values
        }
        var read: [Value] = []
        for _ in 0..<count { read.append(try pass(&self, nil)) }
        return read
    }

    mutating func texts(_ values: [String]?) throws(DamagedRow) -> [String] {
        try list(values) { coder, text throws(DamagedRow) in try coder.text(text) }
    }
}

extension Int64 {
    /// This number of a row as a count, which has room to be counted up.
    func asCount() throws(DamagedRow) -> Int {
        guard (0...Int64(Int32.max)).contains(self) else { throw DamagedRow() }
        return Int(self)
    }
}
