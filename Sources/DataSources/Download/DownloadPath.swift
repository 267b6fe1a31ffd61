import JobModel

/// Where a download goes: a directory that it must stay below, and the path from there.
struct DownloadPath: Sendable {
    static let partSuffix = ".part"

    /// The most bytes of a name in Linux.
    static let longestName = 255

    /// The name of the unfinished download of `name`: if that is too long, a digest of it.
    static func partName(of name: String) -> String {
        let isLong = name.utf8.count + partSuffix.utf8.count > longestName
        return (isLong ? FileDigest.sha256(of: Array(name.utf8)) : name) + partSuffix
    }

    /// The absolute path of the directory that the path must not leave.
    let root: String
    /// The location of `root` without symbolic links, found when the daemon started.
    let location: String
    let directories: [String]
    /// Empty until the server has named the file.
    var name: String
    /// Whether `root` is the caller's own directory, which is made when it is first needed.
    let isOwnDirectory: Bool
    /// The user whose rights count and who gets access to new files; nil for the daemon's own user.
    let owner: UInt32?
    /// The groups whose rights count too; nil for the owner's groups in the system's databases.
    var groups: CallerGroups?
    /// Whether new files are private to this user, regardless of the umask.
    var isPrivate = false

    var directory: String { ([root] + directories).joined(separator: "/") }

    /// The absolute path of the file, or of another name in its directory.
    func absolute(_ name: String? = nil) -> String { directory + "/" + (name ?? self.name) }

    /// The path by which ``FileReservations`` know a name: two roots may be one through a symbolic link.
    func key(_ name: String) -> String { ([location] + directories + [name]).joined(separator: "/") }

    /// The name for the file, or its `count`th other one: `tool-1.tar.gz`, `tool-2.tar.gz`.
    func alternative(_ count: Int) -> String {
        guard count > 0 else { return name }
        var stem = Substring(name)
        var ending = Substring()
        if let dot = stem.lastIndex(of: "."), dot > stem.startIndex {
            ending = stem[dot...]
            stem = stem[..<dot]
            if stem.hasSuffix(".tar"), stem.utf8.count > 4 {
                ending = name.dropFirst(stem.count - 4)
                stem = stem.dropLast(4)
            }
        }
        return "\(stem)-\(count)\(ending)"
    }
}
