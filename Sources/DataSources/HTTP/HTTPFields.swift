import JobModel
import NIOCore

/// The fields of an HTTP header, in their order. Names are compared without regard to case.
///
/// Values are bytes (RFC 9110, section 5.5); as a string, a value that is not UTF-8 is read as Latin-1, and so is one whose
/// characters combine too much to be compared.
package struct HTTPFields: Sendable, Sequence {
    /// The key is the name in lower case.
    private var fields: [(name: String, key: String, bytes: [UInt8])] = []

    init(_ fields: some Sequence<(String, String)> = []) {
        for (name, value) in fields { add(name: name, value: value) }
    }

    var count: Int { fields.count }

    package func makeIterator() -> some IteratorProtocol<(name: String, value: String)> {
        fields.lazy.map { (name: $0.name, value: Self.text($0.bytes)) }.makeIterator()
    }

    static func text(_ bytes: some Collection<UInt8>) -> String {
        // Validating takes five times as long.
        if bytes.allSatisfy({ $0 < 0x80 }) { return String(decoding: bytes, as: UTF8.self) }
        return utf8(bytes) ?? String(String.UnicodeScalarView(bytes.map { Unicode.Scalar($0) }))
    }

    /// The text of bytes in UTF-8 whose characters do not combine too much; nil for others.
    static func utf8(_ bytes: some Sequence<UInt8>) -> String? {
        String(validating: bytes, as: UTF8.self).flatMap { $0.combinesTooMuch ? nil : $0 }
    }

    private func values(_ name: String) -> some Sequence<[UInt8]> {
        let key = name.lowercased()
        return fields.lazy.filter { $0.key == key }.map(\.bytes)
    }

    subscript(name: String) -> [String] { values(name).map(Self.text) }

    func first(name: String) -> String? { bytes(name: name).map(Self.text) }

    func bytes(name: String) -> [UInt8]? { values(name).first { _ in true } }

    func contains(name: String) -> Bool { bytes(name: name) != nil }

    /// The members of all lists with a name, in lower case; empty members do not count.
    func list(_ name: String) -> [String] {
        values(name).flatMap { $0.split(separator: UInt8(ascii: ",")) }.compactMap { member in
            let member = AnswerParser.trimmed(member)
            return member.isEmpty ? nil : Self.text(Array(member)).lowercased()
        }
    }

    mutating func add(name: String, value: String) { add(name: name, bytes: Array(value.utf8)) }

    mutating func add(name: String, bytes: [UInt8]) { fields.append((name, name.lowercased(), bytes)) }

    mutating func add(_ others: HTTPFields) { fields += others.fields }

    mutating func extendLast(_ bytes: some Sequence<UInt8>) {
        if !fields.isEmpty { fields[fields.count - 1].bytes += bytes }
    }

    func write(to buffer: inout ByteBuffer) {
        for (name, _, bytes) in fields {
            buffer.writeString(name)
            buffer.writeStaticString(": ")
            buffer.writeBytes(bytes)
            buffer.writeStaticString("\r\n")
        }
    }

    mutating func remove(name: String) {
        let key = name.lowercased()
        fields.removeAll { $0.key == key }
    }

    mutating func replaceOrAdd(name: String, value: String) {
        remove(name: name)
        add(name: name, value: value)
    }
}
