import JobModel

/// The job specs in a file or an argument: one document, an array of them, or one a line.
struct SpecDocuments: Sendable {
    /// A spec and its location, for messages.
    struct Document: Sendable, Equatable {
        let location: String
        /// The spec, or why there is none.
        let spec: Result<JSON, CommandFailure>
    }

    private let name: String
    private var lines: InputLines
    private var elements: ArraySlice<Document> = []
    private var isFirst = true

    /// What an argument of the command line means: the spec itself where it begins with a brace, else a file, or standard input for `-`.
    init(argument: String) {
        let isSpec = argument.drop(while: \.isWhitespace).first == "{"
        name = isSpec ? "the argument" : argument == "-" ? "standard input" : argument
        lines = isSpec ? InputLines(text: argument) : InputLines(path: argument)
    }

    /// The next document, or nil at the end.
    mutating func next() async throws(CommandFailure) -> Document? {
        if let element = elements.popFirst() { return element }
        guard let line = try await lines.next() else {
            guard isFirst else { return nil }
            throw CommandFailure(
                .badData,
                "\(name) holds no job spec; write one a line, or give one as the argument: see deferctl help submit.")
        }
        defer { isFirst = false }
        let json = Self.parse(line.bytes)
        guard isFirst, case .failure = json else { return document(json, at: "line \(line.number)") }
        // A line that is not JSON by itself may be the beginning of a document of many lines.
        var bytes = line.bytes
        while let next = try await lines.next() {
            bytes += [UInt8(ascii: "\n")] + next.bytes
            guard bytes.count <= InputLines.limit else {
                throw CommandFailure(
                    .badData, "\(name) is larger than \(InputLines.limit) bytes; write one spec a line.")
            }
        }
        return document(Self.parse(bytes), at: name)
    }

    /// A line or document is a spec, or at the beginning an array of specs.
    private mutating func document(_ json: Result<JSON, CommandFailure>, at location: String) -> Document {
        guard isFirst, case .success(.array(let specs)) = json else {
            return Document(location: location, spec: json.flatMap(Self.spec))
        }
        elements = specs.enumerated().map { Document(location: "element \($0)", spec: Self.spec($1)) }[...]
        return elements.popFirst()
            ?? Document(location: location, spec: .failure(CommandFailure(.badData, "The array holds no job spec.")))
    }

    private static func spec(_ json: JSON) -> Result<JSON, CommandFailure> {
        json.object != nil
            ? .success(json)
            : .failure(CommandFailure(.badData, "A job spec is an object, not \(json.typeName)."))
    }

    private static func parse(_ bytes: [UInt8]) -> Result<JSON, CommandFailure> {
        Result { () throws(JSONSyntaxError) in try JSON(parsing: bytes) }
            .mapError { CommandFailure(.badData, "This is not JSON: \($0).") }
    }
}
