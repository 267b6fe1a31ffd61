/// What a daemon tells others about itself: it is a node among those that share a database.
package struct NodeDescription: Sendable, Equatable {
    package let name: String
    package let version: String
    /// The names of its programs; nil if jobs may run any.
    package let programs: [String]?
    /// A hash of its configuration.
    package let configuration: String

    package init(name: String, version: String = "", programs: [String]? = nil, configuration: String = "") {
        (self.name, self.version, self.programs, self.configuration) = (name, version, programs, configuration)
    }

    /// What a node's name consists of.
    package static let nameForm = "1 to 63 letters, digits, dots, underscores and hyphens"

    package static func isName(_ name: String) -> Bool {
        (1...63).contains(name.utf8.count) && name.unicodeScalars.allSatisfy(isAllowed)
    }

    package static func isAllowed(_ character: Unicode.Scalar) -> Bool {
        switch character {
        case "a"..."z", "A"..."Z", "0"..."9", ".", "_", "-": true
        default: false
        }
    }
}
