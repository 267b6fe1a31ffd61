/// What a daemon tells others about itself: it is a node among those that share a database.
package struct NodeDescription: Sendable, Equatable {
    package let name: String
    package let version: String
    /// The names of its programs, and ``anyCommand``.
    package let programs: [String]
    /// A hash of its configuration.
    package let configuration: String

    package init(name: String, version: String = "", programs: [String] = [], configuration: String = "") {
        (self.name, self.version, self.programs, self.configuration) = (name, version, programs, configuration)
    }

    /// Stands for commands without a name among the programs of a node that runs them.
    package static let anyCommand = "*"

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

/// A node as a reader knows it, by its latest life.
package struct NodeRow: Sendable {
    package enum State: String, Sendable {
        case running, stopped
        /// It did not stop, but has not been seen for longer than a lease.
        case away
    }

    package static let most = 1000

    package let node: NodeDescription
    package let startedAt: Timestamp
    /// When it was last in touch with the database.
    package let seen: Timestamp
    package let state: State
    /// Sources that run there.
    package let running: Int

    package init(_ node: NodeDescription, startedAt: Timestamp, seen: Timestamp, state: State, running: Int) {
        (self.node, self.startedAt, self.seen, self.state, self.running) = (node, startedAt, seen, state, running)
    }
}
