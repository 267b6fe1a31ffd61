import Glibc
import JobModel

/// Decides by its text alone where a download's path leads, and refuses a path outside of the allowed directories.
struct DownloadDirectories: Sendable {
    private struct Root: Sendable {
        private(set) var components: [Substring]
        private(set) var path: String
        /// The path without symbolic links, so that it cannot be redirected later.
        private(set) var location: String

        /// Looks up the directory. Blocks. The path and location of the root directory are empty.
        init(_ text: String, key: String, mayBeRoot: Bool = false) throws(JobError) {
            components = DownloadDirectories.components(text)
            guard text.utf8.first == slash, mayBeRoot || !components.isEmpty, !components.contains("..") else {
                throw JobError(
                    .invalid, "\"\(text)\" in \(key) is not a directory; write an absolute path without \"..\".")
            }
            path = components.map { "/" + $0 }.joined()
            location = path.isEmpty ? "" : FileOperations.resolved(path)
        }

        mutating func descend(to name: String) {
            components.append(Substring(name))
            path += "/" + name
            location += "/" + name
        }
    }

    private let directory: Root
    private let roots: [Root]
    private let isSystemInstance: Bool

    init(_ settings: DownloadSettings) throws(JobError) {
        directory = try Root(settings.directory, key: "downloads.directory")
        roots = try settings.roots.map { (root) throws(JobError) in
            try Root(root, key: "downloads.roots", mayBeRoot: true)
        }
        isSystemInstance = settings.isSystemInstance
    }

    /// A single directory, which a program chose.
    init(_ directory: String) throws(JobError) {
        self.directory = try Root(directory, key: "the source's directory", mayBeRoot: true)
        roots = []
        isSystemInstance = false
    }

    var primary: String { directory.path }

    private static let slash = UInt8(ascii: "/")

    /// The names between slashes as bytes: to Swift, a slash before a combining accent is another character.
    private static func components(_ text: String) -> [Substring] {
        text.utf8.split(separator: slash).map(Substring.init).filter { $0 != "." }
    }

    /// The path that `text` means for `owner`, and for a process in `groups`; without a name if it ends in a slash and
    /// `mayBeDirectory`.
    func path(
        _ text: String, owner: UInt32, groups: CallerGroups? = nil, mayBeDirectory: Bool = false
    ) throws(JobError) -> DownloadPath {
        let components = Self.components(text)
        let isDirectory = mayBeDirectory && text.utf8.last == Self.slash
        try check(text, components, isDirectory: isDirectory)
        var own = directory
        if isSystemInstance { own.descend(to: String(owner)) }
        let isRelative = text.utf8.first != Self.slash
        // No caller reaches the directories of others.
        let isForeign = isSystemInstance && components.starts(with: directory.components)
        for (index, root) in ([own] + (isForeign ? [] : roots)).enumerated() {
            let below = components.dropFirst(isRelative ? 0 : root.components.count)
            guard isRelative || components.starts(with: root.components) && (isDirectory || !below.isEmpty) else {
                continue
            }
            return DownloadPath(
                root: root.path, location: root.location,
                directories: (isDirectory ? below : below.dropLast()).map(String.init),
                name: isDirectory ? "" : below.last.map(String.init) ?? "", isOwnDirectory: index == 0,
                owner: isSystemInstance && owner != geteuid() ? owner : nil, groups: groups,
                isPrivate: isSystemInstance)
        }
        throw refusal(text, "is not below a download directory; give a relative path, or one below downloads.roots")
    }

    private func refusal(_ text: String, _ reason: String) -> JobError {
        JobError(.policy, "The path \(SourceMessage.quoted(text)) \(reason).")
    }

    private func check(_ text: String, _ components: [Substring], isDirectory: Bool) throws(JobError) {
        let hasName =
            !components.isEmpty && text.utf8.last != Self.slash && !text.utf8.reversed().starts(with: "./".utf8)
            && text != "."
        guard hasName || isDirectory else { throw refusal(text, "has no file name; give one") }
        guard !components.contains("..") else { throw refusal(text, "must not contain \"..\"; write it without") }
        guard !text.unicodeScalars.contains(where: { $0.properties.generalCategory == .control }) else {
            throw refusal(text, "must not contain control characters; write it without")
        }
        guard text.utf8.count < 4096 - 512,
            components.allSatisfy({ $0.utf8.count <= DownloadPath.longestName })
        else { throw refusal(text, "is too long; give a shorter one") }
        guard isDirectory || components.last?.hasSuffix(DownloadPath.partSuffix) != true else {
            throw refusal(
                text, "ends in \"\(DownloadPath.partSuffix)\", as unfinished downloads do; give another name")
        }
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
