import DataSources
import FoundationEssentials
import JobEngine
import JobModel
import JobProtocol

/// The daemon as a node among those that share a database.
extension Configuration {
    /// The host's name in characters that a node's name can have.
    static let hostName: String = {
        let name = ProcessInfo.processInfo.hostName.unicodeScalars.prefix(63)
        return String(String.UnicodeScalarView(name.map { NodeDescription.isAllowed($0) ? $0 : "-" }))
    }()

    var node: NodeDescription {
        NodeDescription(
            name: nodeName, version: ProductVersion.current,
            programs: (sources.programs.allowsAny ? [NodeDescription.anyCommand] : []) + programs.entries.keys.sorted(),
            configuration: hash)
    }

    /// The settings that differ between good nodes of one database, and its address, which may have a password.
    private static let ownSettings: Set = [
        "node.name", "socket.path", "state.directory", "state.store", "downloads.directory",
    ]

    /// The same for nodes that treat jobs alike.
    private var hash: String {
        let texts = ConfigurationKey.all.filter { !Self.ownSettings.contains($0.name) }.map { $0.text(self) }
        // The default of http.userAgent has the version, which is compared anyway.
        let digest = JSON.string("\(texts)".replacing(ProductVersion.current, with: "")).digest
        let digits = String(digest, radix: 16)
        return String(repeating: "0", count: 16 - digits.count) + digits
    }
}

extension ConfigurationSetting {
    /// A value as text that is the same in each process: without secrets, and without the lines of a file.
    static func text(of value: Any) -> String {
        let mirror = Mirror(reflecting: value)
        if mirror.children.isEmpty { return Masking.masked(url: "\(value)") }
        var parts = mirror.children.compactMap { child -> String? in
            let name = child.label ?? ""
            // A tuple is an entry of a dictionary; another key is that of a certificate.
            let isHidden =
                ["line", "lines", "environment", "chain"].contains(name)
                || name == "key" && mirror.displayStyle != .tuple
            return isHidden ? nil : name + text(of: child.value)
        }
        if [.set, .dictionary].contains(mirror.displayStyle) { parts.sort() }
        return "[\(parts.joined(separator: ", "))]"
    }
}
