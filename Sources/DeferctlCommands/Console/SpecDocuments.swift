import JobClient
import JobModel
import YAML

/// The job specs in a file or an argument: one document, an array, or one spec per line; or documents in YAML.
struct SpecDocuments: AsyncIteratorProtocol, Sendable {
    struct Document: Sendable {
        /// The location in messages.
        let location: String
        let spec: Result<JSON, CommandFailure>
        /// Where its parts are; nil if no text was written by hand.
        var text: SpecText?
    }

    /// The verb whose help says how specs are written.
    var verb = "submit"
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
        if isYAML, isFirst {
            elements = try YAMLSpecs.documents(try await lines.remainder(), in: lines.name)[...]
            if let first = elements.popFirst() { return first }
        }
        guard !isYAML, let line = try await lines.next() else { return try end() }
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
            "\(lines.name) has no job spec; write one per line, or pass one as the argument: see deferctl help "
                + "\(verb).")
    }

    /// A spec; the first document may also be an array of specs.
    private mutating func document(_ text: SpecText, at location: String) -> Document {
        let json: JSON
        do { json = try JSON(parsing: text.bytes) } catch {
            let message = "The spec is not JSON: \(error.place(in: text.bytes, firstLine: text.firstLine))."
            return Document(location: lines.name, spec: .failure(CommandFailure(.badData, message)))
        }
        elements = Self.documents(json, text, at: location, isOnly: isFirst)[...]
        return elements.popFirst()
            ?? Document(location: location, spec: .failure(CommandFailure(.badData, "The array has no job spec.")))
    }

    /// The specs in a value: one, or, of the only one, the elements of an array.
    static func documents(_ json: JSON, _ text: SpecText, at location: String, isOnly: Bool) -> [Document] {
        if isOnly, case .array(let specs) = json {
            return specs.enumerated().flatMap { index, spec in
                documents(spec, text.element(index), at: "element \(index)", isOnly: false)
            }
        }
        let failure = CommandFailure(.badData, "A job spec must be an object, not \(json.typeName).")
        return [Document(location: location, spec: json.object == nil ? .failure(failure) : .success(json), text: text)]
    }
}

/// Job specs written in YAML.
enum YAMLSpecs {
    /// The specs of a file: its documents, or the elements of an only one.
    static func documents(_ bytes: [UInt8], in name: String) throws(CommandFailure) -> [SpecDocuments.Document] {
        let nodes: [YAMLNode]
        do { nodes = try YAMLNode.documents(in: bytes) } catch {
            let place = "line \(error.place.line), column \(error.place.column)"
            throw CommandFailure(.badData, "\(name) is not YAML: \(place): \(error.reason).")
        }
        return nodes.enumerated().flatMap { index, node in
            var marks: [[String]: TextPlace] = [:]
            let json = json(node, at: [], &marks)
            return SpecDocuments.documents(
                json, SpecText(name: name, bytes: bytes, marks: marks),
                at: nodes.count == 1 ? name : "document \(index + 1)", isOnly: nodes.count == 1)
        }
    }

    private static func json(_ node: YAMLNode, at path: [String], _ marks: inout [[String]: TextPlace]) -> JSON {
        // A mistake in a member is one of its name, too, which is marked already.
        if marks[path] == nil { marks[path] = node.place }
        switch node.content {
        case .map(let entries):
            var object = JSONObject()
            for entry in entries {
                marks[path + [entry.name]] = entry.place
                object.append(entry.name, json(entry.value, at: path + [entry.name], &marks))
            }
            return .object(object)
        case .list(let values):
            return .array(values.enumerated().map { json($1, at: path + [String($0)], &marks) })
        case .scalar(let text, isText: true): return .string(text)
        case .scalar(let text, isText: false): return plain(text)
        }
    }

    /// A value without quotes: null, a boolean, a number as JSON writes it, or else a text.
    private static func plain(_ text: String) -> JSON {
        switch text {
        case "", "~", "null", "Null", "NULL": return .null
        case "true", "True", "TRUE": return true
        case "false", "False", "FALSE": return false
        default:
            if let json = try? JSON(parsing: Array(text.utf8)), case .number = json { return json }
            return .string(text)
        }
    }
}

/// The text of a spec, in which mistakes are pointed out.
struct SpecText: Sendable {
    let name: String
    let bytes: [UInt8]
    /// The line of the first byte.
    var firstLine = 1
    /// The place of the spec in the document.
    var start: [String] = []
    /// The places of the values of a YAML document, by their pointers; nil for JSON.
    var marks: [[String]: TextPlace]?

    func element(_ index: Int) -> SpecText {
        var text = self
        text.start.append(String(index))
        return text
    }

    /// The lines that show a mistake: its place and reason, and the line of the text.
    func lines(for mistake: SpecError) -> [String] {
        let place = place(of: mistake.pointer)
        let all = bytes.split(separator: UInt8(ascii: "\n"), omittingEmptySubsequences: false)
        let line = place.line - firstLine
        let text = all.indices.contains(line) ? String(decoding: all[line], as: UTF8.self) : ""
        // A long line is shown from shortly before the mistake.
        let column = text.count > 72 ? max(0, place.column - 16) : 0
        let excerpt = text.dropFirst(column).trimmingPrefix { $0.isWhitespace }.prefix(72)
        return ["\(name):\(place.line):\(place.column): \(mistake.reason)", "    \(excerpt)"]
    }

    /// The place of the value at the pointer; if it is missing, of the nearest part around it.
    private func place(of pointer: JSONPointer) -> TextPlace {
        var tokens = start + pointer.tokens
        while true {
            if let marks {
                if let place = marks[tokens] { return place }
            } else if let offset = JSONParser.offset(of: JSONPointer(tokens), in: bytes) {
                let place = TextPlace(of: offset, in: bytes)
                return TextPlace(line: place.line + firstLine - 1, column: place.column)
            }
            if tokens.popLast() == nil { return TextPlace(line: firstLine, column: 1) }
        }
    }
}

extension JobClientError {
    /// The mistakes in params, as the daemon reports them; none if the error is about something else.
    var mistakes: [SpecError] {
        guard let data = rpc?.data else { return [] }
        return (data["mistakes"]?.array ?? [data]).compactMap { mistake in
            guard let pointer = mistake["pointer"]?.string.flatMap(JSONPointer.init(text:)) else { return nil }
            return mistake["reason"]?.string.map { SpecError(pointer, $0) }
        }
    }
}
