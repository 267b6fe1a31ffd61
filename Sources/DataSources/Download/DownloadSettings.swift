/// Where downloads go: the configuration's `downloads`.
package struct DownloadSettings: Sendable, Equatable {
    /// The absolute folder that relative paths lie in.
    package var directory = "/var/lib/deferd/downloads"
    /// The absolute folders that absolute paths may lie in.
    package var roots: [String] = []
    /// Whether each caller has a folder of its own, named by the uid, that nobody else can read.
    package var isSystemInstance = false

    /// Bytes on a disk below which no download begins.
    package var minimumFree = 64 << 20

    package init() {}
}
