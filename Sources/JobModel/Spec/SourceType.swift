/// The kinds of source that a job or a link can have.
package enum SourceType: String, Sendable, CaseIterable {
    case url
    case download
    case json
    case list
    case each
    case value
    case error
    case timer

    /// Whether it makes child jobs.
    package var hasChildren: Bool { self == .list || self == .each }
}
