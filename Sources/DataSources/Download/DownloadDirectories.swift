import JobModel

/// Decides by its text alone where a download's path leads, and refuses one that leads out of the allowed directories.
struct DownloadDirectories: Sendable {
    private let directory: [Substring]
    private let roots: [[Substring]]
    private let isSystemInstance: Bool

    init(_ settings: DownloadSettings) throws(JobError) {
        directory = try Self.directory(settings.directory, key: "downloads.directory")
        var roots: [[Substring]] = []
        for root in settings.roots { roots.append(try Self.directory(root, key: "downloads.roots")) }
        self.roots = roots
        isSystemInstance = settings.isSystemInstance
    }

    /// One directory that everything lies in, as a program names it.
    init(_ directory: String) throws(JobError) {
        self.directory = try Self.directory(directory, key: "the source's directory")
        roots = []
        isSystemInstance = false
    }

    /// The absolute path of the directory that relative paths lie in.
    var primary: String { "/" + directory.joined(separator: "/") }

    private static func directory(_ text: String, key: String) throws(JobError) -> [Substring] {
        let components = components(text)
        guard text.hasPrefix("/"), !components.isEmpty, !components.contains("..") else {
            throw JobError(.invalid, "\"\(text)\" in \(key) is no folder; write an absolute path without \"..\".")
        }
        return components
    }

    private static func components(_ text: String) -> [Substring] {
        text.split(separator: "/").filter { $0 != "." }
    }

    /// The path that `text` stands for when `owner` gives it.
    func path(_ text: String, owner: UInt32) throws(JobError) -> DownloadPath {
        let components = Self.components(text)
        func refused(_ reason: String) -> JobError {
            JobError(.policy, "The path \(SourceMessage.quoted(text)) \(reason).")
        }
        guard let name = components.last, !text.hasSuffix("/"), !text.hasSuffix("/."), text != "." else {
            throw refused("names no file; give it a file name")
        }
        guard !components.contains("..") else { throw refused("must not hold \"..\"; write it without") }
        guard !text.unicodeScalars.contains(where: { $0.properties.generalCategory == .control }) else {
            throw refused("must not hold control characters; write it without")
        }
        guard text.utf8.count < 4096 - 512, components.allSatisfy({ $0.utf8.count <= 255 }),
            name.utf8.count + DownloadPath.partSuffix.utf8.count <= 255
        else { throw refused("is too long; give a shorter one") }
        guard !name.hasSuffix(DownloadPath.partSuffix) else {
            throw refused("ends in \"\(DownloadPath.partSuffix)\", as unfinished downloads do; give another name")
        }
        let own = isSystemInstance ? directory + [Substring(String(owner))] : directory
        if !text.hasPrefix("/") {
            return path(below: own, Array(components), owner)
        }
        if components.starts(with: own), components.count > own.count {
            return path(below: own, Array(components[own.count...]), owner)
        }
        let isElsewhere = isSystemInstance && components.starts(with: directory)
        guard !isElsewhere,
            let root = roots.first(where: { components.starts(with: $0) && components.count > $0.count })
        else {
            throw refused("lies outside the folders for downloads; give a relative path, or one below downloads.roots")
        }
        return path(below: root, Array(components[root.count...]), owner)
    }

    private func path(below root: [Substring], _ components: [Substring], _ owner: UInt32) -> DownloadPath {
        DownloadPath(
            root: root, directories: components.dropLast().map(String.init),
            name: components.last.map(String.init) ?? "",
            isOwnDirectory: root.starts(with: directory)
                && (root.count == directory.count + (isSystemInstance ? 1 : 0)),
            owner: isSystemInstance ? owner : nil)
    }
}

/// Where downloads go: the configuration's `downloads`.
package struct DownloadSettings: Sendable, Equatable {
    /// The absolute directory that relative paths lie in.
    package var directory = "/var/lib/deferd/downloads"
    /// The absolute directories that absolute paths may lie in.
    package var roots: [String] = []
    /// Whether each caller has a directory of its own, named by the uid, that nobody else can read.
    package var isSystemInstance = false

    /// Bytes on a disk below which no download begins.
    package var minimumFree = 64 << 20

    package init() {}
}
