import Glibc
import JobModel

/// Decides by its text alone where a download's path leads, and refuses one that leads out of the allowed directories.
struct DownloadDirectories: Sendable {
    private let directory: [Substring]
    private let roots: [[Substring]]
    /// Where they are, without symbolic links: who can change the way to one must not be able to lead it elsewhere later.
    private let locations: [[Substring]: String]
    private let isSystemInstance: Bool

    /// Looks the directories up, which blocks.
    init(_ settings: DownloadSettings) throws(JobError) {
        directory = try Self.directory(settings.directory, key: "downloads.directory")
        var roots: [[Substring]] = []
        for root in settings.roots { roots.append(try Self.directory(root, key: "downloads.roots")) }
        self.roots = roots
        locations = Self.locations([directory] + roots)
        isSystemInstance = settings.isSystemInstance
    }

    /// One directory that everything lies in, as a program names it.
    init(_ directory: String) throws(JobError) {
        self.directory = try Self.directory(directory, key: "the source's directory")
        roots = []
        locations = Self.locations([self.directory])
        isSystemInstance = false
    }

    private static func locations(_ directories: [[Substring]]) -> [[Substring]: String] {
        var locations: [[Substring]: String] = [:]
        for directory in directories {
            locations[directory] = FileOperations.resolved("/" + directory.joined(separator: "/"))
        }
        return locations
    }

    /// The absolute path of the directory that relative paths lie in.
    var primary: String { "/" + directory.joined(separator: "/") }

    private static func directory(_ text: String, key: String) throws(JobError) -> [Substring] {
        let components = components(text)
        guard text.utf8.first == slash, !components.isEmpty, !components.contains("..") else {
            throw JobError(.invalid, "\"\(text)\" in \(key) is no directory; write an absolute path without \"..\".")
        }
        return components
    }

    private static let slash = UInt8(ascii: "/")
    /// The most names in a path: those of directories, and the file's.
    private static let mostNames = 100

    /// The names between slashes as the system sees them: to Swift a slash before a combining accent is another character.
    private static func components(_ text: String) -> [Substring] {
        text.utf8.split(separator: slash).map(Substring.init).filter { $0 != "." }
    }

    /// The path that `text` stands for when `owner` gives it, and a process in `groups`.
    func path(_ text: String, owner: UInt32, groups: CallerGroups? = nil) throws(JobError) -> DownloadPath {
        let components = Self.components(text)
        func refused(_ reason: String) -> JobError {
            JobError(.policy, "The path \(SourceMessage.quoted(text)) \(reason).")
        }
        guard let name = components.last, text.utf8.last != Self.slash, !text.utf8.reversed().starts(with: "./".utf8),
            text != "."
        else {
            throw refused("names no file; give it a file name")
        }
        guard !components.contains("..") else { throw refused("must not hold \"..\"; write it without") }
        guard !text.unicodeScalars.contains(where: { $0.properties.generalCategory == .control }) else {
            throw refused("must not hold control characters; write it without")
        }
        guard text.utf8.count < 4096 - 512, components.allSatisfy({ $0.utf8.count <= 255 }),
            name.utf8.count + DownloadPath.partSuffix.utf8.count <= 255
        else { throw refused("is too long; give a shorter one") }
        guard components.count <= Self.mostNames else {
            throw refused("has more than \(Self.mostNames) names; give a shorter one")
        }
        guard !name.hasSuffix(DownloadPath.partSuffix) else {
            throw refused("ends in \"\(DownloadPath.partSuffix)\", as unfinished downloads do; give another name")
        }
        let own = isSystemInstance ? directory + [Substring(String(owner))] : directory
        if text.utf8.first != Self.slash {
            return path(below: own, Array(components), owner, groups)
        }
        if components.starts(with: own), components.count > own.count {
            return path(below: own, Array(components[own.count...]), owner, groups)
        }
        let isElsewhere = isSystemInstance && components.starts(with: directory)
        guard !isElsewhere,
            let root = roots.first(where: { components.starts(with: $0) && components.count > $0.count })
        else {
            throw refused("lies in no directory for downloads; give a relative path, or one below downloads.roots")
        }
        return path(below: root, Array(components[root.count...]), owner, groups)
    }

    private func path(
        below root: [Substring], _ components: [Substring], _ owner: UInt32, _ groups: CallerGroups?
    ) -> DownloadPath {
        let isOwn = root.starts(with: directory) && root.count == directory.count + (isSystemInstance ? 1 : 0)
        let location =
            isOwn && isSystemInstance ? locations[directory].map { $0 + "/\(owner)" } : locations[root]
        let path = "/" + root.joined(separator: "/")
        return DownloadPath(
            root: path, location: location ?? path, directories: components.dropLast().map(String.init),
            name: components.last.map(String.init) ?? "", isOwnDirectory: isOwn,
            owner: isSystemInstance && owner != geteuid() ? owner : nil, groups: groups, isPrivate: isSystemInstance)
    }
}

/// Where downloads go: the configuration's `downloads`.
package struct DownloadSettings: Sendable, Equatable {
    /// The absolute directory that relative paths lie in.
    package var directory = "/var/lib/deferd/downloads"
    /// The absolute directories that absolute paths may lie in.
    package var roots: [String] = []
    /// Whether each caller has a directory of its own, named by the uid, that nobody else can read, and reaches only what
    /// their own uid and groups may.
    package var isSystemInstance = false

    /// Bytes on a disk below which no download begins.
    package var minimumFree = 64 << 20

    package init() {}
}
