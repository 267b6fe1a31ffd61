import JobModel
import Testing

/// Numbers, equality and look-ups.
@Suite struct JSONValueTests {
    // MARK: - Numbers

    @Test(arguments: [
        ("0", 0), ("-0", 0), ("3", 3), ("3.0", 3), ("3e2", 300), ("-3.00e0", -3), ("1.5e1", 15),
        ("9223372036854775807", Int.max), ("-9223372036854775808", Int.min),
        ("9007199254740991.0", 9_007_199_254_740_991),
    ])
    func int_isTheValue_ofWholeNumbers(_ text: String, _ value: Int) {
        #expect(JSONNumber(unchecked: text).int == value)
    }

    @Test(arguments: ["0.5", "1e-1", "9223372036854775808", "1e30", "1e400", "9007199254740993.0"])
    func int_isNil_whereItDoesNotFitExactly(_ text: String) {
        #expect(JSONNumber(unchecked: text).int == nil)
    }

    @Test(arguments: [
        (0.0, "0"), (-0.0, "0"), (1, "1"), (-2, "-2"), (0.5, "0.5"), (1e15, "1000000000000000"), (1e300, "1e+300"),
        (0.1, "0.1"), (9_007_199_254_740_992, "9007199254740992"),
    ])
    func double_isWritten_asJSONWritesNumbers(_ value: Double, _ text: String) throws {
        #expect(JSON(value).description == text)
        #expect(try JSON(parsing: Array(text.utf8)).double == value)
    }

    @Test(arguments: [Double.infinity, -.infinity, .nan])
    func double_isNull_whereJSONHasNoNumber(_ value: Double) {
        #expect(JSON(value) == .null)
        #expect(JSONNumber(value) == nil)
    }

    @Test func double_isInfinite_whereTheTextIsTooLarge() {
        #expect(JSONNumber(unchecked: "1e400").double == .infinity)
    }

    // MARK: - Accessors

    @Test func accessors_giveNil_forOtherTypes() {
        let values: [JSON] = [nil, true, 1, "x", [1], ["a": 1]]
        #expect(values.map(\.isNull) == [true, false, false, false, false, false])
        #expect(values.map(\.bool) == [nil, true, nil, nil, nil, nil])
        #expect(values.map(\.int) == [nil, nil, 1, nil, nil, nil])
        #expect(values.map(\.double) == [nil, nil, 1, nil, nil, nil])
        #expect(values.map(\.string) == [nil, nil, nil, "x", nil, nil])
        #expect(values.map(\.array) == [nil, nil, nil, nil, [1], nil])
        #expect(values.map { $0["a"] } == [nil, nil, nil, nil, nil, 1])
        #expect(values.map { $0[0] } == [nil, nil, nil, nil, 1, nil])
        #expect(JSON.array([1])[1] == nil && JSON.array([1])[-1] == nil)
    }

    // MARK: - Objects

    @Test func object_changes_byName() {
        var object = JSONObject()
        object["a"] = 1
        object["b"] = 2
        object["a"] = 3
        #expect(object.names == ["a", "b"] && object["a"] == 3)
        object["a"] = nil
        #expect(object.names == ["b"] && object["a"] == nil)
    }

    @Test func object_removesEveryMember_ofADoubledName() throws {
        var object = try #require(try JSON(parsing: #"{"a":1,"b":2,"a":3}"#).object)
        #expect(object["a"] == 3)
        object["a"] = nil
        #expect(JSON.object(object).description == #"{"b":2}"#)
    }

    @Test(arguments: [
        (#"{"a":1,"b":2}"#, #"{"b":2,"a":1}"#, true), (#"{"a":1,"a":2}"#, #"{"a":2}"#, true),
        (#"{"a":{"x":1,"y":[{"p":1,"q":2}]}}"#, #"{"a":{"y":[{"q":2,"p":1}],"x":1}}"#, true),
        (#"{"a":1}"#, #"{"a":1,"b":null}"#, false), (#"{"a":1}"#, #"{"b":1}"#, false), ("[1,2]", "[2,1]", false),
        (#"{"a":1,"a":2}"#, #"{"a":1}"#, false), ("1", "1.0", false), (#""a""#, #""b""#, false),
    ])
    func equality_ignoresTheOrderOfMembers(_ left: String, _ right: String, _ areEqual: Bool) throws {
        let (left, right) = (try JSON(parsing: left), try JSON(parsing: right))
        #expect((left == right) == areEqual)
        #expect((right == left) == areEqual)
        if areEqual { #expect(left.hashValue == right.hashValue) }
    }

    @Test func equality_isQuick_whereDeepValuesDifferAtTheBottom() throws {
        func deep(_ bottom: String) throws -> JSON {
            try JSON(
                parsing: String(repeating: #"{"b":0,"a":"#, count: 60) + bottom + String(repeating: "}", count: 60))
        }
        // A comparison that looks at each level twice would outlast the sun.
        #expect(try deep("1") != deep("2"))
        #expect(try deep("1") == deep("1"))
    }

    @Test func names_differ_whereTheirBytesDo() throws {
        // RFC 6901 and 8259 compare code points: a letter with an accent is not a letter and an accent.
        let object = try #require(try JSON(parsing: #"{"\u00e9":1,"e\u0301":2}"#).object)
        #expect(object["\u{E9}"] == 1)
        #expect(object["e\u{301}"] == 2)
        var changed = object
        changed["\u{E9}"] = nil
        #expect(changed.members.count == 1)
        #expect(try JSON(parsing: #"["\u00e9"]"#) != JSON(parsing: #"["e\u0301"]"#))
        #expect(try JSON(parsing: #"{"\u00e9":1}"#) != JSON(parsing: #"{"e\u0301":1}"#))
    }
}
