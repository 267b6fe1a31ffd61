import JobModel

/// How messages name what a source worked on: without credentials and not too long.
enum SourceMessage {
    static func quoted(_ text: String) -> String {
        let masked = Masking.masked(url: text)
        return masked.count > 200 ? "\"\(masked.prefix(199))…\"" : "\"\(masked)\""
    }

    static func quoted(_ url: RequestURL) -> String { quoted(url.description) }

    /// Seconds without a needless fraction.
    static func seconds(_ seconds: Double) -> String { "\(JSON(seconds)) s" }
}
