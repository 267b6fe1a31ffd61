import JobModel

/// The job specs in a file or an argument: one document, an array, or one spec per line; or documents in YAML.
struct SpecDocuments: AsyncIteratorProtocol, Sendable {
    struct Document: Sendable {
        /// The location in messages.
        let location: String
        let spec: Result<JSON, CommandFailure>
        /// Where its parts are; nil if no text was written by hand.
        var text: SpecText?
    }

    private var lines: InputLines
    private let isYAML: Bool
    private var elements: ArraySlice<Document> = []
    private var isFirst = true

    /// The specs in a command-line argument: the spec itself if it begins with a brace, else a file, or `-` for standard input.
    init(argument: String) {
        let isSpec = argument.drop(while: \.isWhitespace).first == "{"
        lines = isSpec ? InputLines(text: argument) : InputLines(path: argument)
        isYAML = !isSpec && [".yaml", ".yml"].contains { argument.lowercased().hasSuffix($0) }
    }

    mutating func next() async throws(CommandFailure) -> Document? {
        if let element = elements.popFirst() { return element }
        defer { isFirst = false }
        if isYAML {
            if isFirst { elements = try YAMLSpecs.documents(try await lines.remainder(), in: lines.name)[...] }
            if let element = elements.popFirst() { return element }
            return try end()
        }
        guard let line = try await lines.next() else { return try end() }
        let text = SpecText(name: lines.name, bytes: line.bytes, firstLine: line.number)
        guard isFirst, (try? JSON(parsing: line.bytes)) == nil else { return document(text, at: "line \(line.number)") }
        // A line that is not JSON may be the beginning of a document of many lines.
        let rest = try await lines.remainder()
        let whole = rest.isEmpty ? line.bytes : line.bytes + [UInt8(ascii: "\n")] + rest
        return document(SpecText(name: lines.name, bytes: whole, firstLine: line.number), at: lines.name)
    }

    private func end() throws(CommandFailure) -> Document? {
        guard isFirst else { return nil }
        throw CommandFailure(
            .badData,
            "\(lines.name) has no job spec; write one per line, or pass one as the argument: see deferctl help submit.")
    }

    /// A spec; the first document may also be an array of specs.
    private mutating func document(_ text: SpecText, at location: String) -> Document {
        let json: JSON
        do { json = try JSON(parsing: text.bytes) } catch {
            let message = "The spec is not JSON: \(text.place(of: error))."
            return Document(location: lines.name, spec: .failure(CommandFailure(.badData, message)))
        }
        guard isFirst, case .array(let specs) = json else {
            return Document(location: location, spec: Self.spec(json), text: text)
        }
        elements =
            specs.enumerated().map { index, spec in
                Document(location: "element \(index)", spec: Self.spec(spec), text: text.element(index))
            }[...]
        return elements.popFirst()
            ?? Document(location: location, spec: .failure(CommandFailure(.badData, "The array has no job spec.")))
    }

    static func spec(_ json: JSON) -> Result<JSON, CommandFailure> {
        json.object != nil
            ? .success(json)
            : .failure(CommandFailure(.badData, "A job spec must be an object, not \(json.typeName)."))
    }
}
