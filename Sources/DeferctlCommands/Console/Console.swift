import Glibc
import JobModel

/// Where a verb writes: data to standard output, messages and progress to standard error.
struct Console: Sendable {
    let data: FileOutput
    let messages: FileOutput
    /// Whether people read the data on a terminal.
    let showsData: Bool
    /// Whether people read the messages on a terminal, on which progress can be drawn in place.
    let showsMessages: Bool
    /// Whether more than ASCII can be shown.
    let isUnicode: Bool
    /// The colours of the data, and of the messages.
    let palette: Palette
    let messagePalette: Palette

    /// The console of this process.
    init(color: ColorChoice = .auto) {
        let variables = ProcessEnvironment.variables
        data = .standardOutput
        messages = .standardError
        showsData = data.isTerminal
        showsMessages = messages.isTerminal && FileOutput.hasCursor(variables)
        isUnicode = Self.isUnicode(variables)
        palette = Palette(isColored: color.isColored(isTerminal: showsData, variables))
        messagePalette = Palette(isColored: color.isColored(isTerminal: messages.isTerminal, variables))
    }

    /// The columns of the terminal that the data goes to; nil where it goes elsewhere, where nothing is cut.
    var width: Int? { showsData ? ScreenSize(of: data).columns : nil }

    /// What marks a cut.
    var cutMark: String { isUnicode ? "…" : "..." }

    /// Whether the locale that these variables set writes UTF-8.
    static func isUnicode(_ variables: [String: String]) -> Bool {
        let names = ["LC_ALL", "LC_CTYPE", "LANG"]
        guard let locale = names.lazy.compactMap({ variables[$0] }).first(where: { !$0.isEmpty }) else { return false }
        let upper = locale.uppercased()
        return upper.contains("UTF-8") || upper.contains("UTF8")
    }

    /// Writes a line of data.
    func line(_ text: String) throws(CommandFailure) {
        try data.write(text + "\n")
    }

    /// Writes lines of data.
    func lines(_ lines: [String]) throws(CommandFailure) {
        try data.write(lines.map { $0 + "\n" }.joined())
    }

    /// Writes a value as a line of JSON.
    func line(_ json: JSON) throws(CommandFailure) {
        try data.write(json.utf8 + [UInt8(ascii: "\n")])
    }

    /// Writes what a program wrote to its standard error. An error is ignored, as ``say(_:)`` does.
    func show(standardError text: String) {
        guard !text.isEmpty else { return }
        var bytes = Array((text.hasSuffix("\n") ? text : text + "\n").utf8)
        if messages.isTerminal {
            var filter = TerminalFilter()
            bytes = filter.filter(bytes)
        }
        try? messages.write(bytes)
    }

    /// Writes a message. An error is ignored, as it could be reported in no other way.
    func say(_ message: String) {
        try? messages.write("deferctl: \(message)\n")
    }
}
