import FoundationEssentials
import JobModel

/// Where a verb writes: data to standard output, messages and progress to standard error.
struct Console: Sendable {
    let data = FileOutput.standardOutput
    let messages = FileOutput.standardError
    /// Whether people read the data on a terminal.
    let showsData: Bool
    /// Whether people read the messages on a terminal, on which progress can be drawn in place.
    let showsMessages: Bool
    private let dataFormat: TextFormat
    /// How messages look, whose width changes with the terminal.
    let messageFormat: TextFormat

    /// The console of this process.
    init(color: ColorChoice = .auto) {
        let variables = ProcessInfo.processInfo.environment
        showsData = data.isTerminal
        showsMessages = messages.isTerminal && FileOutput.hasCursor(variables)
        func format(_ output: FileOutput) -> TextFormat {
            let isColored = color.isColored(isTerminal: output.isTerminal, variables)
            return TextFormat(isUnicode: Self.isUnicode(variables), palette: Palette(isColored: isColored))
        }
        dataFormat = format(data)
        messageFormat = format(messages)
    }

    /// How data looks: as wide as the terminal that it goes to, and of any width where it goes elsewhere.
    var format: TextFormat { dataFormat.within(showsData ? ScreenSize(of: data).columns : nil) }

    /// Whether the locale that these variables set writes UTF-8.
    static func isUnicode(_ variables: [String: String]) -> Bool {
        let names = ["LC_ALL", "LC_CTYPE", "LANG"]
        guard let locale = names.lazy.compactMap({ variables[$0] }).first(where: { !$0.isEmpty }) else { return false }
        let upper = locale.uppercased()
        return upper.contains("UTF-8") || upper.contains("UTF8")
    }

    /// Writes a line of data.
    func line(_ text: String) throws(CommandFailure) { try data.write(text + "\n") }

    /// Writes lines of data.
    func lines(_ lines: [String]) throws(CommandFailure) { try data.write(lines.map { $0 + "\n" }.joined()) }

    /// Writes a value as a line of JSON.
    func line(_ json: JSON) throws(CommandFailure) { try data.write(json.utf8 + [UInt8(ascii: "\n")]) }

    /// Writes what a program wrote to its standard error. An error is ignored, as ``say(_:)`` does.
    func show(standardError text: String) {
        if !text.isEmpty { try? messages.show(text.hasSuffix("\n") ? text : text + "\n") }
    }

    /// Writes a message. An error is ignored, as it could be reported in no other way.
    func say(_ message: String) { try? messages.write("deferctl: \(message)\n") }
}
