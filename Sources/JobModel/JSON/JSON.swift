/// A JSON value that keeps the digits of numbers and the order of members.
public enum JSON: Sendable, Hashable {
    case null
    case bool(Bool)
    case number(JSONNumber)
    case string(String)
    case array([JSON])
    case object(JSONObject)

    /// Returns whether both values are equal; numbers compare by digits, strings by bytes.
    public static func == (left: JSON, right: JSON) -> Bool {
        switch (left, right) {
        case (.null, .null): true
        case (.bool(let left), .bool(let right)): left == right
        case (.number(let left), .number(let right)): left == right
        case (.string(let left), .string(let right)): left.hasSameBytes(as: right)
        case (.array(let left), .array(let right)): left == right
        case (.object(let left), .object(let right)): left == right
        default: false
        }
    }

    /// The value of the named member; nil if this is not an object or lacks the member.
    public subscript(name: String) -> JSON? { object?[name] }

    /// The element at `index`; nil if this is not an array or is shorter.
    public subscript(index: Int) -> JSON? {
        guard case .array(let elements) = self, elements.indices.contains(index) else { return nil }
        return elements[index]
    }

    /// The text of a string, or nil.
    public var string: String? { if case .string(let text) = self { text } else { nil } }

    /// The value of a whole number that fits, or nil.
    public var int: Int? { if case .number(let number) = self { number.int } else { nil } }

    /// The value of a number, or nil.
    public var double: Double? { if case .number(let number) = self { number.double } else { nil } }

    /// The value of a boolean, or nil.
    public var bool: Bool? { if case .bool(let value) = self { value } else { nil } }

    /// The elements of an array, or nil.
    public var array: [JSON]? { if case .array(let elements) = self { elements } else { nil } }

    /// The members of an object, or nil.
    public var object: JSONObject? { if case .object(let object) = self { object } else { nil } }

    /// Whether this is the JSON value `null`.
    public var isNull: Bool { if case .null = self { true } else { false } }

    /// The size as JSON text, in bytes.
    package var size: Int {
        switch self {
        case .null, .bool(true): 4
        case .bool(false): 5
        case .number(let number): number.text.utf8.count
        case .string(let text): JSONWriter.size(of: text)
        case .array(let elements): elements.reduce(max(1, elements.count) + 1) { $0 + $1.size }
        case .object(let object):
            object.members.reduce(max(1, object.members.count) + 1) {
                $0 + JSONWriter.size(of: $1.name) + 1 + $1.value.size
            }
        }
    }

    /// Returns whether arrays and objects nest at most `depth` levels deep.
    package func nests(atMost depth: Int) -> Bool {
        switch self {
        case .array(let elements): depth > 0 && elements.allSatisfy { $0.nests(atMost: depth - 1) }
        case .object(let object): depth > 0 && object.members.allSatisfy { $0.value.nests(atMost: depth - 1) }
        default: true
        }
    }

    /// The name of this type in messages: "a string", "an object", "null".
    package var typeName: String {
        switch self {
        case .null: "null"
        case .bool: "a boolean"
        case .number: "a number"
        case .string: "a string"
        case .array: "an array"
        case .object: "an object"
        }
    }
}

extension JSON: ExpressibleByNilLiteral, ExpressibleByBooleanLiteral, ExpressibleByIntegerLiteral,
    ExpressibleByFloatLiteral, ExpressibleByStringLiteral, ExpressibleByArrayLiteral, ExpressibleByDictionaryLiteral
{
    /// Makes `null`.
    public init(nilLiteral: ()) { self = .null }
    /// Makes a boolean.
    public init(booleanLiteral value: Bool) { self = .bool(value) }
    /// Makes a whole number.
    public init(integerLiteral value: Int) { self = .number(JSONNumber(value)) }
    /// Makes a number; infinities and NaN, which JSON cannot express, become `null`.
    public init(floatLiteral value: Double) { self = JSON(value) }
    /// Makes a string.
    public init(stringLiteral value: String) { self = .string(value) }
    /// Makes an array.
    public init(arrayLiteral elements: JSON...) { self = .array(elements) }
    /// Makes an object with the members in the written order.
    public init(dictionaryLiteral elements: (String, JSON)...) {
        self = .object(JSONObject(elements.map { JSONObject.Member(name: $0.0, value: $0.1) }))
    }

    /// Makes a whole number.
    public init(_ value: Int) { self = .number(JSONNumber(value)) }
    /// Makes a number; infinities and NaN, which JSON cannot express, become `null`.
    public init(_ value: Double) { self = JSONNumber(value).map(JSON.number) ?? .null }
}
