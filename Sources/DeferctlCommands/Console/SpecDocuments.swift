import JobModel

/// The job specs in a file or an argument: one document, an array, or one spec per line.
struct SpecDocuments: Sendable {
    struct Document: Sendable, Equatable {
        let location: String
        let spec: Result<JSON, CommandFailure>
    }

    private let name: String
    private var lines: InputLines
    private var elements: ArraySlice<Document> = []
    private var isFirst = true

    /// The specs in a command-line argument: the spec itself if it begins with a brace, else a file, or `-` for standard input.
    init(argument: String) {
        let isSpec = argument.drop(while: \.isWhitespace).first == "{"
        name = isSpec ? "the argument" : argument == "-" ? "standard input" : argument
        lines = isSpec ? InputLines(text: argument) : InputLines(path: argument)
    }

    mutating func next() async throws(CommandFailure) -> Document? {
        if let element = elements.popFirst() { return element }
        guard let line = try await lines.next() else {
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
        while let next = try await lines.next() {
            bytes += [UInt8(ascii: "\n")] + next.bytes
            guard bytes.count <= InputLines.limit else {
                throw CommandFailure(
                    .badData, "\(name) is larger than \(InputLines.limit) bytes; write one spec per line.")
            }
        }
        return document(Self.parse(bytes), at: name)
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
