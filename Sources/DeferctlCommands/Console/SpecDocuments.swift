import JobModel

/// The job specs in a file or an argument: one document, an array, or one spec per line.
struct SpecDocuments: Sendable {
    struct Document: Sendable, Equatable {
        let location: String
        let spec: Result<JSON, CommandFailure>
    }

    /// The maximum size of a line, and of a document of many lines.
    private static let limit = 64 << 20

    /// The name of the input in messages.
    private let name: String
    /// The file that is read, up to its end.
    private var path: String?
    private var input: InputFile?
    /// The input that was read, of which the first `scanned` bytes have no line feed.
    private var rest: ArraySlice<UInt8>
    private var scanned = 0
    private var number = 0
    private var elements: ArraySlice<Document> = []
    private var isFirst = true

    /// The specs in a command-line argument: the spec itself if it begins with a brace, else a file, or `-` for standard input.
    init(argument: String) {
        let isSpec = argument.drop(while: \.isWhitespace).first == "{"
        name = isSpec ? "the argument" : argument == "-" ? "standard input" : argument
        path = isSpec ? nil : argument
        rest = isSpec ? Array(argument.utf8)[...] : []
    }

    mutating func next() async throws(CommandFailure) -> Document? {
        if let element = elements.popFirst() { return element }
        guard let line = try await line() else {
            guard isFirst else { return nil }
            throw CommandFailure(
                .badData,
                "\(name) has no job spec; write one per line, or pass one as the argument: see deferctl help submit.")
        }
        defer { isFirst = false }
        let json = Self.parse(line.bytes)
        guard isFirst, case .failure = json else { return document(json, at: "line \(line.number)") }
        // A line that is not JSON may be the beginning of a document of many lines.
        var bytes = line.bytes
        while let next = try await self.line() {
            bytes += [UInt8(ascii: "\n")] + next.bytes
            guard bytes.count <= Self.limit else {
                throw CommandFailure(.badData, "\(name) is larger than \(Self.limit) bytes; write one spec per line.")
            }
        }
        return document(Self.parse(bytes), at: name)
    }

    /// The next line that is not empty, with its number from 1; nil at the end.
    private mutating func line() async throws(CommandFailure) -> (number: Int, bytes: [UInt8])? {
        while true {
            if let end = rest.dropFirst(scanned).firstIndex(of: UInt8(ascii: "\n")) {
                if let line = take(to: end) { return line }
                continue
            }
            scanned = rest.count
            guard scanned <= Self.limit else {
                throw CommandFailure(
                    .badData, "Line \(number + 1) of \(name) is longer than \(Self.limit) bytes; split it.")
            }
            // The last line needs no line feed.
            guard let path else { return take(to: rest.endIndex) }
            let file = if let input { input } else { try InputFile(path: path) }
            input = file
            let piece = try await file.read()
            if piece.isEmpty { self.path = nil } else { rest += piece }
        }
    }

    /// Removes the bytes of a line; nil if it is empty.
    private mutating func take(to end: Int) -> (number: Int, bytes: [UInt8])? {
        let bytes = rest[..<end]
        rest = rest[end...].dropFirst()
        scanned = 0
        number += 1
        return bytes.contains { ![0x20, 0x09, 0x0D].contains($0) } ? (number, Array(bytes)) : nil
    }

    /// A spec; the first document may also be an array of specs.
    private mutating func document(_ json: Result<JSON, CommandFailure>, at location: String) -> Document {
        guard isFirst, case .success(.array(let specs)) = json else {
            return Document(location: location, spec: json.flatMap(Self.spec))
        }
        elements = specs.enumerated().map { Document(location: "element \($0)", spec: Self.spec($1)) }[...]
        return elements.popFirst()
            ?? Document(location: location, spec: .failure(CommandFailure(.badData, "The array has no job spec.")))
    }

    private static func spec(_ json: JSON) -> Result<JSON, CommandFailure> {
        json.object != nil
            ? .success(json)
            : .failure(CommandFailure(.badData, "A job spec must be an object, not \(json.typeName)."))
    }

    private static func parse(_ bytes: [UInt8]) -> Result<JSON, CommandFailure> {
        Result { () throws(JSONSyntaxError) in try JSON(parsing: bytes) }
            .mapError { CommandFailure(.badData, "The spec is not JSON: \($0).") }
    }
}
