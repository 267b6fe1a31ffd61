import JobModel
import TestSupport
import Testing

@Suite struct JSONPointerTests {
    /// The document of RFC 6901, section 5.
    private let document: JSON = [
        "foo": ["bar", "baz"], "": 0, "a/b": 1, "c%d": 2, "e^f": 3, "g|h": 4, "i\\j": 5, "k\"l": 6, " ": 7, "m~n": 8,
    ]

    @Test(
        arguments: [
            ("/foo", ["bar", "baz"]), ("/foo/0", "bar"), ("/", 0), ("/a~1b", 1), ("/c%d", 2), ("/e^f", 3), ("/g|h", 4),
            ("/i\\j", 5), ("/k\"l", 6), ("/ ", 7), ("/m~0n", 8),
        ] as [(String, JSON)])
    func value_isFound_asSection5OfRFC6901Says(_ text: String, _ value: JSON) throws {
        let pointer = try #require(JSONPointer(text: text))
        #expect(document[pointer] == value)
        #expect(pointer.description == text)
    }

    @Test func value_isTheWhole_whereThePointerIsEmpty() throws {
        #expect(document[try #require(JSONPointer(text: ""))] == document)
        #expect(JSONPointer().description.isEmpty)
    }

    @Test(arguments: [
        "/nothing", "/foo/2", "/foo/-", "/foo/-1", "/foo/00", "/foo/01", "/foo/+1", "/foo/1e0", "/foo/ 1", "/foo/",
        "/foo/bar", "/foo/0/0", "//", "/foo/99999999999999999999", "/foo/\u{661}", "/foo/0\u{301}",
    ])
    func value_isNil_whereThereIsNone(_ text: String) throws {
        #expect(document[try #require(JSONPointer(text: text))] == nil)
    }

    @Test(arguments: ["foo", "#/foo", " /foo", "~0", "/~", "/~2", "/a~", "/a/b~x", "/~~"])
    func pointer_isNil_whereTheTextIsNone(_ text: String) {
        #expect(JSONPointer(text: text) == nil)
    }

    @Test(arguments: [
        ("/~01", "~1"), ("/~10", "/0"), ("/~0~1~0", "~/~"), ("/a~1~1b", "a//b"),
    ])
    func token_isUnescaped_once(_ text: String, _ token: String) {
        #expect(JSONPointer(text: text)?.tokens == [token])
    }

    @Test func slash_isASlash_whateverFollows() throws {
        // Swift joins a slash and an accent to one character.
        let pointer = try #require(JSONPointer(text: "/a/\u{301}b"))
        #expect(pointer.tokens.map { Array($0.unicodeScalars) } == [["a"], ["\u{301}", "b"]])
        #expect(JSONPointer(text: "/\u{301}")?.tokens.map { Array($0.unicodeScalars) } == [["\u{301}"]])
        #expect(JSON.object(JSONObject([.init(name: "\u{301}", value: 1)]))[JSONPointer(["\u{301}"])] == 1)
    }

    @Test func name_isFound_onlyWithItsOwnCodePoints() throws {
        let document = try JSON(parsing: #"{"\u00e9":1}"#)
        #expect(document[JSONPointer(["\u{E9}"])] == 1)
        #expect(document[JSONPointer(["e\u{301}"])] == nil)
    }

    @Test func description_readsBack_toTheSameTokens() throws {
        var generator = SeededGenerator(seed: 4)
        for _ in 0..<2000 {
            let tokens = (0..<Int.random(in: 0..<4, using: &generator)).map { _ in JSON.text(using: &generator) }
            let text = JSONPointer(tokens).description
            let again = try #require(JSONPointer(text: text))
            #expect(again.tokens.map { Array($0.utf8) } == tokens.map { Array($0.utf8) })
        }
    }

    @Test func appending_pointsFurther() {
        #expect(JSONPointer(["then"]).appending(0).appending("a/b").description == "/then/0/a~1b")
    }
}
