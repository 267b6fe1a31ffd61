import Glibc
import JobModel

/// Decides by its text alone where a download's path leads, and refuses a path outside of the allowed directories.
struct DownloadDirectories: Sendable {
    private let directory: [Substring]
    private let roots: [[Substring]]
    /// The directories without symbolic links, so that they cannot be redirected later.
    private let locations: [[Substring]: String]
    private let isSystemInstance: Bool

    /// Looks up the directories. Blocks.
    init(_ settings: DownloadSettings) throws(JobError) {
        directory = try Self.directory(settings.directory, key: "downloads.directory")
        var roots: [[Substring]] = []
        for root in settings.roots { roots.append(try Self.directory(root, key: "downloads.roots")) }
        self.roots = roots
        locations = Self.locations([directory] + roots)
        isSystemInstance = settings.isSystemInstance
    }

    /// A single directory, which a program chose.
    init(_ directory: String) throws(JobError) {
        self.directory = try Self.directory(directory, key: "the source's directory")
        roots = []
        locations = Self.locations([self.directory])
        isSystemInstance = false
    }

    private static func locations(_ directories: [[Substring]]) -> [[Substring]: String] {
        Dictionary(
            directories.map { ($0, FileOperations.resolved("/" + $0.joined(separator: "/"))) },
            uniquingKeysWith: { first, _ in first })
    }

    /// The absolute path of the directory for relative paths.
    var primary: String { "/" + directory.joined(separator: "/") }

    private static func directory(_ text: String, key: String) throws(JobError) -> [Substring] {
        let components = components(text)
        guard text.utf8.first == slash, !components.isEmpty, !components.contains("..") else {
            throw JobError(
                .invalid, "\"\(text)\" in \(key) is not a directory; write an absolute path without \"..\".")
        }
        return components
    }

    private static let slash = UInt8(ascii: "/")
    /// The most names in a path.
    private static let mostNames = 100

    /// The names between slashes as bytes: to Swift, a slash before a combining accent is another character.
    private static func components(_ text: String) -> [Substring] {
        text.utf8.split(separator: slash).map(Substring.init).filter { $0 != "." }
    }

    /// The path that `text` means for `owner`, and for a process in `groups`.
    func path(_ text: String, owner: UInt32, groups: CallerGroups? = nil) throws(JobError) -> DownloadPath {
        let components = Self.components(text)
        try check(text, components)
        let own = isSystemInstance ? directory + [Substring(String(owner))] : directory
        let isBelowOwn = components.starts(with: own) && components.count > own.count
        if text.utf8.first != Self.slash || isBelowOwn {
            let location = locations[directory].map { isSystemInstance ? "\($0)/\(owner)" : $0 }
            let below = text.utf8.first == Self.slash ? components.dropFirst(own.count) : components[...]
            return path(own, location, below, isOwn: true, owner, groups)
        }
        let isElsewhere = isSystemInstance && components.starts(with: directory)
        guard !isElsewhere,
            let root = roots.first(where: { components.starts(with: $0) && components.count > $0.count })
        else {
            throw refusal(text, "is not below a download directory; give a relative path, or one below downloads.roots")
        }
        return path(root, locations[root], components.dropFirst(root.count), isOwn: false, owner, groups)
    }

    private func refusal(_ text: String, _ reason: String) -> JobError {
        JobError(.policy, "The path \(SourceMessage.quoted(text)) \(reason).")
    }

    private func check(_ text: String, _ components: [Substring]) throws(JobError) {
        guard let name = components.last, text.utf8.last != Self.slash, !text.utf8.reversed().starts(with: "./".utf8),
            text != "."
        else { throw refusal(text, "has no file name; give one") }
        guard !components.contains("..") else { throw refusal(text, "must not contain \"..\"; write it without") }
        guard !text.unicodeScalars.contains(where: { $0.properties.generalCategory == .control }) else {
            throw refusal(text, "must not contain control characters; write it without")
        }
        guard text.utf8.count < 4096 - 512, components.allSatisfy({ $0.utf8.count <= 255 }),
            name.utf8.count + DownloadPath.partSuffix.utf8.count <= 255
        else { throw refusal(text, "is too long; give a shorter one") }
        guard components.count <= Self.mostNames else {
            throw refusal(text, "has more than \(Self.mostNames) names; give a shorter one")
        }
        guard !name.hasSuffix(DownloadPath.partSuffix) else {
            throw refusal(
                text, "ends in \"\(DownloadPath.partSuffix)\", as unfinished downloads do; give another name")
        }
    }

    private func path(
        _ root: [Substring], _ location: String?, _ components: ArraySlice<Substring>, isOwn: Bool, _ owner: UInt32,
        _ groups: CallerGroups?
    ) -> DownloadPath {
        let path = "/" + root.joined(separator: "/")
        return DownloadPath(
            root: path, location: location ?? path, directories: components.dropLast().map(String.init),
            name: components.last.map(String.init) ?? "", isOwnDirectory: isOwn,
            owner: isSystemInstance && owner != geteuid() ? owner : nil, groups: groups, isPrivate: isSystemInstance)
    }
}

/// Where downloads go: the configuration's `downloads`.
package struct DownloadSettings: Sendable, Equatable {
    /// The absolute directory for relative paths.
    package var directory = "/var/lib/deferd/downloads"
    /// The absolute directories for absolute paths.
    package var roots: [String] = []
    /// Whether each caller has a private directory, named by the uid, and reaches only what their uid and groups may.
    package var isSystemInstance = false
    /// The free bytes on a disk below which no download begins.
    package var minimumFree = 64 << 20

    package init() {}
}
