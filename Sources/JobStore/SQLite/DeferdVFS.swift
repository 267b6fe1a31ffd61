import CSQLite

/// The VFS "deferd" (`vfs.c`), which SQLite opens files with: it has the pages of databases checked (``PageChecks``), and
/// writes to the log with few calls.
enum DeferdVFS {
    /// Registers it, before the first database is opened.
    static let register: Void = deferd_register_vfs()
}
