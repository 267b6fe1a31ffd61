import JobModel
import Testing

@testable import DeferctlCommands

@Suite struct SpecDocumentsTests {
    /// What a file of this text holds: the location with the spec, or with the sentence that says what is wrong.
    private func read(_ text: String) async throws -> [String] {
        let file = try TemporaryFile(Array(text.utf8))
        var documents: [String] = []
        var specs = SpecDocuments(argument: file.path)
        while let document = try await specs.next() {
            switch document.spec {
            case .success(let spec): documents.append("\(document.location.replacing(file.path, with: "FILE")) \(spec)")
            case .failure(let failure): documents.append("\(document.location): \(failure.message)")
            }
        }
        return documents
    }

    @Test func oneSpecALine() async throws {
        #expect(try await read("{\"a\":1}\r\n\n  \n{\"b\":2}") == ["line 1 {\"a\":1}", "line 4 {\"b\":2}"])
    }

    @Test func oneSpecOnManyLines() async throws {
        #expect(try await read("\n{\n \"a\": 1\n\n}\n") == ["FILE {\"a\":1}"])
    }

    @Test(arguments: [
        (#" {"a":1}"#, #"line 1 {"a":1}"#), ("{\n\"a\":1\n}\n", #"the argument {"a":1}"#),
        ("{\"a\":1}\n{\"b\":2}\n", #"line 1 {"a":1};line 2 {"b":2}"#),
    ])
    func argument_isTheSpecItself_whereItBeginsWithABrace(argument: String, expected: String) async throws {
        var found: [String] = []
        var specs = SpecDocuments(argument: argument)
        while let document = try await specs.next() {
            found.append("\(document.location) \(try document.spec.get())")
        }
        #expect(found.joined(separator: ";") == expected)
    }

    @Test func argument_isAFile_whereItDoesNot() async throws {
        let file = try TemporaryFile(Array("{\"a\":1}".utf8))
        var specs = SpecDocuments(argument: file.path)
        #expect(try await specs.next()?.spec.get() == ["a": 1])
    }

    @Test func anArrayOfSpecs_onOneLineOrMany() async throws {
        #expect(try await read("[{\"a\":1},{\"b\":2}]") == ["element 0 {\"a\":1}", "element 1 {\"b\":2}"])
        #expect(try await read("[\n{\"a\":1},\n{\"b\":2}\n]\n") == ["element 0 {\"a\":1}", "element 1 {\"b\":2}"])
    }

    @Test func aWrongLine_isTold_andThoseBehindItAreRead() async throws {
        #expect(
            try await read("{\"a\":1}\n{\"b\":\n7\n[{}]\n{\"c\":3}") == [
                "line 1 {\"a\":1}", "line 2: The spec is not JSON: the value is missing at byte 5.",
                "line 3: A job spec must be an object, not a number.",
                "line 4: A job spec must be an object, not an array.",
                "line 5 {\"c\":3}",
            ])
    }

    @Test func aLineLongerThanOneRead_isWhole() async throws {
        let text = String(repeating: "x", count: 300_000)
        let documents = try await read("{\"a\":\"\(text)\"}\n{\"b\":2}\n")
        #expect(documents.map(\.utf8.count) == [7 + 8 + 300_000, 14])
    }

    @Test(arguments: ["", "\n \n"])
    func nothing_isBadData(text: String) async throws {
        let failure = await #expect(throws: CommandFailure.self) { try await read(text) }
        #expect(failure?.status == .badData)
    }

    @Test func aMissingFile_isBadData() async throws {
        let failure = await #expect(throws: CommandFailure.self) {
            var specs = SpecDocuments(argument: "/nonexistent/file")
            _ = try await specs.next()
        }
        let message =
            "/nonexistent/file cannot be opened: No such file or directory. Name another file, or - for standard input."
        #expect(failure == CommandFailure(.badData, message))
    }
}
