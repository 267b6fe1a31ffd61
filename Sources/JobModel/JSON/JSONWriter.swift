/// Writes JSON text, value by value, into one buffer.
///
/// JSONSerialization takes 70 times as long for 430 bytes.
package struct JSONWriter {
    /// The text written so far, in UTF-8.
    package private(set) var bytes: [UInt8]

    package init(reservingCapacity capacity: Int = 256) {
        bytes = []
        bytes.reserveCapacity(capacity)
    }

    /// Appends JSON text.
    package mutating func raw(_ text: StaticString) {
        bytes.append(contentsOf: UnsafeBufferPointer(start: text.utf8Start, count: text.utf8CodeUnitCount))
    }

    /// Appends JSON text.
    package mutating func raw(_ json: [UInt8]) { bytes.append(contentsOf: json) }

    /// Appends JSON text.
    package mutating func raw(text: String) {
        var text = text
        text.withUTF8 { bytes.append(contentsOf: $0) }
    }

    package mutating func write(_ value: Int) { bytes.append(contentsOf: String(value).utf8) }

    package mutating func write(_ value: JSON) {
        switch value {
        case .null: raw("null")
        case .bool(true): raw("true")
        case .bool(false): raw("false")
        case .number(let number): bytes.append(contentsOf: number.text.utf8)
        case .string(let text): write(text)
        case .array(let elements):
            bytes.append(UInt8(ascii: "["))
            for (index, element) in elements.enumerated() {
                if index > 0 { bytes.append(UInt8(ascii: ",")) }
                write(element)
            }
            bytes.append(UInt8(ascii: "]"))
        case .object(let object):
            bytes.append(UInt8(ascii: "{"))
            for (index, member) in object.members.enumerated() {
                if index > 0 { bytes.append(UInt8(ascii: ",")) }
                write(member.name)
                bytes.append(UInt8(ascii: ":"))
                write(member.value)
            }
            bytes.append(UInt8(ascii: "}"))
        }
    }

    /// Appends a member of an object, with a comma before it unless it is the first.
    mutating func member(_ name: StaticString, _ value: JSON?) {
        guard let value else { return }
        begin(name)
        write(value)
    }

    /// Appends a member whose value is JSON text.
    mutating func member(_ name: StaticString, text: [UInt8]) {
        begin(name)
        raw(text)
    }

    private mutating func begin(_ name: StaticString) {
        bytes.append(UInt8(ascii: bytes.isEmpty ? "{" : ","))
        bytes.append(UInt8(ascii: "\""))
        raw(name)
        raw("\":")
    }

    /// Appends a string with quotes and escapes.
    package mutating func write(_ text: String) {
        bytes.append(UInt8(ascii: "\""))
        var text = text
        text.withUTF8 { utf8 in
            let utf8 = UnsafeRawBufferPointer(utf8)
            // Runs without escapes are appended whole.
            var start = 0
            while start < utf8.count {
                let end = Self.plainEnd(utf8, from: start)
                bytes.append(contentsOf: UnsafeRawBufferPointer(rebasing: utf8[start..<end]))
                if end < utf8.count { escape(utf8[end]) }
                start = end + 1
            }
        }
        bytes.append(UInt8(ascii: "\""))
    }

    /// Returns the offset of the next byte to escape, or the end; examines eight bytes at a time.
    static func plainEnd(_ text: UnsafeRawBufferPointer, from start: Int) -> Int {
        var index = start
        while index + 8 <= text.count {
            let word = UInt64(littleEndian: text.loadUnaligned(fromByteOffset: index, as: UInt64.self))
            // Each of these sets a byte's highest bit if the byte is below a space, a quote or a backslash. A borrow
            // may set it in a later byte too; the first is always right.
            let control = (word &- 0x2020_2020_2020_2020) & ~word
            let quote = zeros(in: word ^ 0x2222_2222_2222_2222)
            let backslash = zeros(in: word ^ 0x5C5C_5C5C_5C5C_5C5C)
            let found = (control | quote | backslash) & 0x8080_8080_8080_8080
            if found != 0 { return index + found.trailingZeroBitCount / 8 }
            index += 8
        }
        while index < text.count, !isEscaped(text[index]) { index += 1 }
        return index
    }

    /// Sets the highest bit of each zero byte, and of no byte before the first one.
    private static func zeros(in word: UInt64) -> UInt64 { (word &- 0x0101_0101_0101_0101) & ~word }

    private static func isEscaped(_ byte: UInt8) -> Bool {
        byte < 0x20 || byte == UInt8(ascii: "\"") || byte == UInt8(ascii: "\\")
    }

    /// The control characters with an escape of one letter.
    private static let shortEscapes: [UInt8] = [0x08, 0x09, 0x0A, 0x0C, 0x0D]

    /// Returns the size of a string as ``write(_:)`` writes it, in bytes.
    package static func size(of text: String) -> Int {
        var text = text
        return text.withUTF8 { utf8 in
            let raw = UnsafeRawBufferPointer(utf8)
            var size = raw.count + 2
            var index = plainEnd(raw, from: 0)
            while index < raw.count {
                size += raw[index] < 0x20 && !shortEscapes.contains(raw[index]) ? 5 : 1
                index = plainEnd(raw, from: index + 1)
            }
            return size
        }
    }

    private mutating func escape(_ byte: UInt8) {
        bytes.append(UInt8(ascii: "\\"))
        switch byte {
        case UInt8(ascii: "\n"): bytes.append(UInt8(ascii: "n"))
        case UInt8(ascii: "\r"): bytes.append(UInt8(ascii: "r"))
        case UInt8(ascii: "\t"): bytes.append(UInt8(ascii: "t"))
        case 0x08: bytes.append(UInt8(ascii: "b"))
        case 0x0C: bytes.append(UInt8(ascii: "f"))
        case 0x20...: bytes.append(byte)
        default:
            raw(byte < 0x10 ? "u000" : "u00")
            raw(text: String(byte, radix: 16))
        }
    }
}

extension JSON: CustomStringConvertible {
    /// The value as JSON text in UTF-8, without white space.
    public var utf8: [UInt8] {
        var writer = JSONWriter()
        writer.write(self)
        return writer.bytes
    }

    /// The value as JSON text, without white space.
    public var description: String { String(decoding: utf8, as: UTF8.self) }
}
