import JobModel

/// Where a download goes: a directory that it must stay below, and the way from there.
struct DownloadPath: Sendable {
    /// What an unfinished download's name ends in.
    static let partSuffix = ".part"

    /// The absolute path of the directory that nothing may lead out of.
    let root: String
    /// Where `root` is, without symbolic links, as the daemon found it when it started.
    let location: String
    /// The directories between.
    let directories: [String]
    let name: String
    /// Whether `root` is the caller's own directory, which is made when it is first needed.
    let isOwnDirectory: Bool
    /// The user whose rights count and who can read and write the files; nil for the daemon's own user.
    let owner: UInt32?
    /// The groups whose rights count beside; nil for those that the system's databases have the owner in.
    var groups: CallerGroups?
    /// Whether new files are private to this user, regardless of the umask.
    var isPrivate = false

    /// The absolute path of the directory that the file lies in.
    var directory: String { ([root] + directories).joined(separator: "/") }

    /// The absolute path of the file, or of one named otherwise beside it.
    func absolute(_ name: String? = nil) -> String { directory + "/" + (name ?? self.name) }

    /// The same by which reservations know it: two roots may be one, by a symbolic link.
    func key(_ name: String) -> String { key(directories.count) + "/" + name }

    /// The same of the directory that the first `count` names lead to.
    func key(_ count: Int) -> String { ([location] + directories.prefix(count)).joined(separator: "/") }

    /// The `count`th other name for the file: `tool-1.tar.gz`, `tool-2.tar.gz`.
    func alternative(_ count: Int) -> String {
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
