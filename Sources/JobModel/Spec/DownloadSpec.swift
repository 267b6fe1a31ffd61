/// The transfer of a `download` source.
package struct DownloadSpec: Sendable, Equatable {
    /// What to do if the target exists.
    package enum Exists: String, Sendable, CaseIterable {
        case fail, replace
        /// Use the next free name: `tool-1.tar.gz`.
        case rename
        /// Succeed without a transfer.
        case skip
        /// Ask the server whether the file changed since the last download to that path.
        case validate
    }

    package var url: String
    /// A directory, in which the server names the file, if it ends in a slash.
    package var path: String
    package var headers: [HeaderField]
    package var exists: Exists
    package var checksum: Checksum?
    /// Alternative URLs, tried in order when one fails; at most 32.
    package var mirrors: [String]
    /// Bytes per second; nil for no limit.
    package var rate: Int?
    /// The number of connections used at once, if the server and the limits allow it: 1 to 16.
    package var segments: Int
    /// Whether the file gets the time at which the server's was modified.
    package var remoteTime: Bool
    /// Seconds without a byte after which the transfer fails; nil for those of the configuration.
    package var idleTimeout: Double?

    package var sources: [String] { [url] + mirrors }

    static let members = [
        "type", "url", "path", "headers", "exists", "checksum", "mirrors", "rate", "segments",
        "remoteTime", "idleTimeout",
    ]

    init(_ reader: MemberReader) throws(SpecError) {
        url = try reader.requiredString("url")
        path = try reader.path("path")
        headers = try HeaderField.read(reader)
        exists = try reader.choice("exists") ?? .fail
        guard !path.hasSuffix("/") || exists != .replace && exists != .validate else {
            throw reader.fault(
                "exists", "\"\(exists.rawValue)\" needs the name of the file; give a path that does not end in \"/\".")
        }
        checksum = try reader.checksum("checksum")
        mirrors = try reader.strings("mirrors", atMost: 32) ?? []
        rate = try reader.integer("rate", in: 1...1 << 50)
        segments = try reader.integer("segments", in: 1...16) ?? 1
        remoteTime = try reader.flag("remoteTime") ?? false
        idleTimeout = try JobSpec.duration(reader, "idleTimeout")
    }
}
