package import JobModel

/// A value of a YAML document.
package struct YAMLNode: Sendable, Equatable {
    package enum Content: Sendable, Equatable {
        /// A single value as it is written; quotes, a block or the tag `!!str` mark it as a text.
        case scalar(String, isText: Bool)
        case list([YAMLNode])
        case map([Entry])
    }

    package struct Entry: Sendable, Equatable {
        package let name: String
        /// The place of the name; nil if it is not from a document.
        package let place: TextPlace?
        package let value: YAMLNode

        package init(name: String, place: TextPlace? = nil, value: YAMLNode) {
            (self.name, self.place, self.value) = (name, place, value)
        }
    }

    package let content: Content
    /// Nil if it is not from a document.
    package let place: TextPlace?

    package init(_ content: Content, at place: TextPlace? = nil) { (self.content, self.place) = (content, place) }
}

/// A syntax error in YAML.
package struct YAMLError: Error {
    package let place: TextPlace
    /// A clause.
    package let reason: String
}
