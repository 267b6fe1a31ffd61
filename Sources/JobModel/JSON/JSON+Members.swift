extension JSONObject: ExpressibleByDictionaryLiteral {
    /// Creates an object with these members in order, omitting nil values.
    public init(dictionaryLiteral elements: (String, JSON?)...) {
        self.init(elements.compactMap { name, value in value.map { Member(name: name, value: $0) } })
    }
}

extension String {
    package var json: JSON { .string(self) }
}

extension Bool {
    package var json: JSON { .bool(self) }
}

extension Double {
    package var json: JSON { JSON(self) }
}

extension Int {
    package var json: JSON { JSON(self) }
}

extension Int64 {
    package var json: JSON { JSON(Int(self)) }
}

extension Sequence<String> {
    package var json: JSON { .array(map(JSON.string)) }
}
