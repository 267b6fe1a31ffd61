/// The transfer of a `download` source.
package struct DownloadSpec: Sendable, Equatable {
    /// What to do when the target is there already.
    package enum Exists: String, Sendable, CaseIterable {
        case fail
        case replace
        /// Use the next free name: `tool-1.tar.gz`.
        case rename
        /// Succeed without a transfer.
        case skip
        /// Ask the server whether it changed since the last download of that path.
        case validate
    }

    package var url: String
    package var path: String
    package var headers: [HeaderField]
    package var exists: Exists
    /// The SHA-256 that the file must have, as 64 lower-case hexadecimal digits.
    package var sha256: String?
    /// Where else the file is, tried in order when one fails; at most 32.
    package var mirrors: [String]
    /// Bytes a second, or nil for no limit.
    package var rate: Int?
    /// Connections to fetch it with at once, where the server and the limits allow it: 1 to 16.
    package var segments: Int

    static let members = ["type", "url", "path", "headers", "exists", "checksum", "mirrors", "rate", "segments"]

    init(_ reader: MemberReader) throws(SpecError) {
        url = try reader.requiredString("url")
        path = try reader.path("path")
        headers = try HeaderField.read(reader)
        exists = try reader.choice("exists") ?? .fail
        sha256 = try reader.sha256("checksum")
        mirrors = try reader.strings("mirrors", atMost: 32) ?? []
        rate = try reader.integer("rate", in: 1...1 << 50)
        segments = try reader.integer("segments", in: 1...16) ?? 1
    }
}
