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
            case .failure(let failure):
                documents.append("\(document.location): \(failure.message)".replacing(file.path, with: "FILE"))
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

    @Test func anArrayOfSpecs_onOneLineOrMany() async throws {
        #expect(try await read("[{\"a\":1},{\"b\":2}]") == ["element 0 {\"a\":1}", "element 1 {\"b\":2}"])
        #expect(try await read("[\n{\"a\":1},\n{\"b\":2}\n]\n") == ["element 0 {\"a\":1}", "element 1 {\"b\":2}"])
    }

    @Test(arguments: [
        ("{\n\n  \"a\": 1,\n}", "line 4, column 1: a member's name is missing, found `}`"),
        ("\n{\"a\": tru}", "line 2, column 7: expected a value, found `tru}`"),
        ("[{\"é\": }]", "line 1, column 8: expected a value, found `}]`"),
        ("{\"a\":", "line 1, column 6: the value is missing, found the end"),
    ])
    func aMistakeInJSON_hasItsPlaceAndText(text: String, place: String) async throws {
        let said = try await read(text)
        #expect(said.count == 1 && said[0].contains("The spec is not JSON: \(place)"), "\(said)")
    }

    @Test func yaml_holdsSpecs() throws {
        func read(_ text: String) throws -> [JSON] {
            try YAMLSpecs.documents(Array(text.utf8), in: "specs.yaml").map { try $0.spec.get() }
        }
        let text =
            "source: {type: timer, seconds: 1.5}\nlabel: \"5\"\npriority: 5\nkey: ~\ntags:\n- yes it is\n- 'no'\n"
        #expect(
            try read(text) == [
                [
                    "source": ["type": "timer", "seconds": 1.5], "label": "5", "priority": 5, "key": nil,
                    "tags": ["yes it is", "no"],
                ]
            ])
        #expect(try read("a: 1\n---\nb: true\n") == [["a": 1], ["b": true]])
        #expect(try read("- a: 1\n- b: 2\n") == [["a": 1], ["b": 2]])
        // Without quotes, what JSON does not read as a number is a text, such as a mode.
        #expect(
            try read("{a: 0022, b: -1.5, c: True, d: ~, e: , f: 1_0, g: 0x1F, h: !!str 5, i: .5}") == [
                [
                    "a": "0022", "b": -1.5, "c": true, "d": nil, "e": nil, "f": "1_0", "g": "0x1F", "h": "5", "i": ".5",
                ]
            ])
        #expect(try read("a: &x {b: 1}\nc: *x\n") == [["a": ["b": 1], "c": ["b": 1]]])
    }

    @Test(
        arguments: [
            ("a: [", "line 2, column 1"), ("a: 1\nb: {c: 1, c: 2}\n", "line 2, column 11: \"b.c\" is there twice"),
            ("- 1", "must be an object"), ("a: *x", "line 1, column 4: there is no complete value &x"),
            ("a: &x [*x]", "there is no complete value &x"), ("[a]: 1", "line 1, column 1: the name in a map"),
            (String(repeating: "[", count: 200_000), "more than 100 values inside each other"),
            (
                (1...30).reduce("a0: &a0 [1]\n") { "\($0)a\($1): &a\($1) [*a\($1 - 1), *a\($1 - 1)]\n" },
                "more than 1048576 values"
            ),
        ])
    func wrongYAML_isRefused_withItsPlace(text: String, reason: String) throws {
        let failure = try #require(throws: CommandFailure.self) {
            try YAMLSpecs.documents(Array(text.utf8), in: "specs.yaml").map { try $0.spec.get() }
        }
        #expect(failure.message.contains(reason), "\(failure.message)")
    }

    @Test func mistakes_areShown_inTheText() throws {
        let mistakes = [
            SpecError(JSONPointer(["source", "metod"]), "No such member."),
            SpecError(JSONPointer(["source", "url"]), "\"url\" is missing."),
        ]
        let json = "{\n  \"source\": {\n    \"metod\": \"PUT\"}}"
        let text = SpecText(name: "f", bytes: Array(json.utf8), firstLine: 3)
        #expect(
            mistakes.flatMap(text.lines) == [
                "f:5:14: No such member.", "    \"metod\": \"PUT\"}}", "f:4:13: \"url\" is missing.",
                "    \"source\": {",
            ])
    }

    @Test func aWrongLine_isTold_andThoseBehindItAreRead() async throws {
        #expect(
            try await read("{\"a\":1}\n{\"b\":\n7\n[{}]\n{\"c\":3}") == [
                "line 1 {\"a\":1}",
                "FILE: The spec is not JSON: line 2, column 6: the value is missing, found the end.",
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
