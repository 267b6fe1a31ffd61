import JobModel

/// The job specs in a file or an argument: one document, an array of them, or one a line.
struct SpecDocuments: AsyncSequence {
    /// A spec and its location, for messages.
    struct Document: Sendable, Equatable {
        let location: String
        /// The spec, or why there is none.
        let spec: Result<JSON, CommandFailure>
    }

    private let name: String
    private let lines: InputLines

    /// What the file at `path` holds; `-` is standard input.
    init(path: String) {
        name = path == "-" ? "standard input" : path
        lines = InputLines(path: path)
    }

    /// What an argument of the command line means: the spec itself where it begins with a brace, else a file.
    init(argument: String) {
        guard argument.drop(while: \.isWhitespace).first == "{" else {
            self.init(path: argument)
            return
        }
        self.init(text: argument, name: "the argument")
    }

    private init(text: String, name: String) {
        self.name = name
        lines = InputLines(text: text, name: name)
    }

    func makeAsyncIterator() -> AsyncIterator { AsyncIterator(name: name, lines: lines.makeAsyncIterator()) }

    struct AsyncIterator: AsyncIteratorProtocol, Sendable {
        fileprivate let name: String
        fileprivate var lines: InputLines.AsyncIterator
        fileprivate var elements: ArraySlice<Document> = []
        fileprivate var isFirst = true

        mutating func next() async throws(CommandFailure) -> Document? {
            if let element = elements.popFirst() { return element }
            guard let line = try await lines.next() else {
                if isFirst {
                    throw CommandFailure(
                        .badData,
                        "\(name) holds no job spec; write one a line, or give one as the argument: see deferctl help submit."
                    )
                }
                return nil
            }
            defer { isFirst = false }
            do throws(JSONSyntaxError) {
                return document(try JSON(parsing: line.bytes), at: "line \(line.number)")
            } catch {
                // A line that is not JSON by itself may be the beginning of a document of many lines.
                if isFirst { return try await document(beginningWith: line) }
                return Document(location: "line \(line.number)", spec: .failure(fault(error)))
            }
        }

        /// A line or document is a spec, or at the beginning an array of specs.
        private mutating func document(_ json: JSON, at location: String) -> Document {
            guard isFirst, let specs = json.array else { return Document(location: location, spec: spec(json)) }
            elements = specs.enumerated().map { Document(location: "element \($0)", spec: spec($1)) }[...]
            return elements.popFirst()
                ?? Document(
                    location: location, spec: .failure(CommandFailure(.badData, "The array holds no job spec.")))
        }

        private func spec(_ json: JSON) -> Result<JSON, CommandFailure> {
            json.object != nil
                ? .success(json)
                : .failure(CommandFailure(.badData, "A job spec is an object, not \(json.typeName)."))
        }

        private mutating func document(beginningWith line: InputLines.Line) async throws(CommandFailure) -> Document {
            var bytes = line.bytes
            while let next = try await lines.next() {
                bytes.append(UInt8(ascii: "\n"))
                bytes += next.bytes
                guard bytes.count <= InputLines.limit else {
                    throw CommandFailure(
                        .badData, "\(name) is larger than \(InputLines.limit) bytes; write one spec a line.")
                }
            }
            do throws(JSONSyntaxError) {
                return document(try JSON(parsing: bytes), at: name)
            } catch {
                return Document(location: name, spec: .failure(fault(error)))
            }
        }

        private func fault(_ error: JSONSyntaxError) -> CommandFailure {
            CommandFailure(.badData, "This is not JSON: \(error).")
        }
    }
}
