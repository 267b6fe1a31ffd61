import FoundationEssentials
import JobModel

/// The outputs of a verb: data on standard output, messages and progress on standard error.
struct Console: Sendable {
    let data = FileOutput.standardOutput
    let messages = FileOutput.standardError
    let showsData: Bool
    /// Whether messages go to a terminal on which progress can be drawn in place.
    let showsMessages: Bool
    private let dataFormat: TextFormat
    let messageFormat: TextFormat

    init(color: ColorChoice = .auto) {
        let variables = ProcessInfo.processInfo.environment
        showsData = data.isTerminal
        showsMessages = messages.isTerminal && FileOutput.hasCursor(variables)
        func format(_ output: FileOutput) -> TextFormat {
            TextFormat(
                isUnicode: Self.isUnicode(variables),
                isColored: color.isColored(isTerminal: output.isTerminal, variables))
        }
        dataFormat = format(data)
        messageFormat = format(messages)
    }

    /// The format of data: as wide as the terminal, or of any width elsewhere.
    var format: TextFormat { dataFormat.within(showsData ? ScreenSize(of: data).columns : nil) }

    /// Whether the locale that these variables set writes UTF-8.
    static func isUnicode(_ variables: [String: String]) -> Bool {
        let names = ["LC_ALL", "LC_CTYPE", "LANG"]
        let locale = names.lazy.compactMap { variables[$0] }.first { !$0.isEmpty }?.uppercased() ?? ""
        return locale.contains("UTF-8") || locale.contains("UTF8")
    }

    func lines(_ lines: [String]) throws(CommandFailure) { try data.write(lines.map { $0 + "\n" }.joined()) }

    /// Writes values as lines of JSON, without what would steer a terminal.
    func lines(json values: [JSON]) throws(CommandFailure) {
        try data.write(
            values.flatMap { (showsData ? Array(PrettyJSON.scalar($0).utf8) : $0.utf8) + [UInt8(ascii: "\n")] })
    }

    func line(_ json: JSON) throws(CommandFailure) { try lines(json: [json]) }

    /// Writes a message, in lines that fit a terminal; an error is ignored, because there is no other way to report it.
    func say(_ message: String) {
        let text = "deferctl: \(message)"
        let lines = showsMessages ? text.wrapped(to: ScreenSize(of: messages).columns) : [text]
        try? messages.write(lines.map { $0 + "\n" }.joined())
    }
}
