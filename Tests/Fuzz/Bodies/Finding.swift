/// An error that a body found for its input. A trap needs none.
package struct Finding: Error, CustomStringConvertible {
    package let description: String

    package init(_ description: String) {
        self.description = description
    }

    /// Throws a finding unless `condition` holds.
    package static func unless(_ condition: Bool, _ description: @autoclosure () -> String) throws(Finding) {
        if !condition { throw Finding(description()) }
    }
}
