/// The fields of an HTTP header, in their order. Names are compared without regard to case.
///
/// Values are bytes (RFC 9110, section 5.5); as a string, a value that is not UTF-8 is read as Latin-1.
package struct HTTPFields: Sendable, Sequence {
    private var fields: [(name: String, bytes: [UInt8])] = []

    init(_ fields: some Sequence<(String, String)> = []) {
        for (name, value) in fields { add(name: name, value: value) }
    }

    var count: Int { fields.count }

    package func makeIterator() -> some IteratorProtocol<(name: String, value: String)> {
        fields.lazy.map { (name: $0.name, value: Self.text($0.bytes)) }.makeIterator()
    }

    private static func text(_ bytes: [UInt8]) -> String {
        String(validating: bytes, as: UTF8.self)
            ?? String(String.UnicodeScalarView(bytes.map { Unicode.Scalar($0) }))
    }

    private static func isSame(_ name: String, _ other: String) -> Bool {
        name.utf8.count == other.utf8.count
            && zip(name.utf8, other.utf8).allSatisfy { one, two in
                one == two || one | 0x20 == two | 0x20 && (0x61...0x7A).contains(one | 0x20)
            }
    }

    /// All values of a name.
    subscript(name: String) -> [String] {
        fields.filter { Self.isSame($0.name, name) }.map { Self.text($0.bytes) }
    }

    func first(name: String) -> String? { bytes(name: name).map(Self.text) }

    func bytes(name: String) -> [UInt8]? { fields.first { Self.isSame($0.name, name) }?.bytes }

    func contains(name: String) -> Bool { fields.contains { Self.isSame($0.name, name) } }

    /// The members of all lists with a name, in lower case; empty members do not count.
    func list(_ name: String) -> [String] {
        self[name].flatMap { $0.split(separator: ",") }.compactMap { member in
            let member = member.drop { $0 == " " || $0 == "\t" }
            let end = member.lastIndex { $0 != " " && $0 != "\t" }
            return end.map { member[...$0].lowercased() }
        }
    }

    mutating func add(name: String, value: String) { add(name: name, bytes: Array(value.utf8)) }

    mutating func add(name: String, bytes: [UInt8]) { fields.append((name, bytes)) }

    mutating func add(contentsOf others: HTTPFields) { fields += others.fields }

    /// Adds bytes to the last value.
    mutating func extendLast(_ bytes: some Sequence<UInt8>) {
        if !fields.isEmpty { fields[fields.count - 1].bytes += bytes }
    }

    mutating func remove(name: String) { fields.removeAll { Self.isSame($0.name, name) } }

    mutating func replaceOrAdd(name: String, value: String) {
        remove(name: name)
        add(name: name, value: value)
    }
}
