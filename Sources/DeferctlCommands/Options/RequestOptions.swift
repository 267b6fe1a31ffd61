import ArgumentParser
import JobModel

/// The flags for the request of a `fetch` or `json`.
struct RequestOptions: ParsableArguments {
    /// The most bytes that are read for a body; the daemon's own bound may be lower.
    private static let limit = 64 << 20

    @Option(
        name: .long,
        help: ArgumentHelp("The request's method (default: GET, or POST with --data).", valueName: "word"))
    var method: String?

    @OptionGroup var fields: HeaderOptions

    @Option(
        name: [.customLong("data"), .customShort("d")],
        help: ArgumentHelp(
            "The request's body: text, @FILE for a file's bytes, or @- for standard input.",
            discussion: "No Content-Type is sent unless --header says so.", valueName: "text"))
    var data: String?

    /// The source of this type that asks for `url`.
    func source(type: SourceType, url: String) async throws(CommandFailure) -> JSONObject {
        var source = JSONObject()
        source["type"] = .string(type.rawValue)
        source["url"] = .string(url)
        source["method"] = (method ?? (data == nil ? nil : "POST")).map(JSON.string)
        source["headers"] = fields.headers
        guard let data else { return source }
        guard data.hasPrefix("@") else {
            source["body"] = .string(data)
            return source
        }
        let bytes = try await InputFile.contents(of: String(data.dropFirst()), limit: Self.limit)
        if let text = String(validating: bytes, as: UTF8.self) {
            source["body"] = .string(text)
        } else {
            source["bodyBase64"] = .string(Base64.encode(bytes))
        }
        return source
    }
}
