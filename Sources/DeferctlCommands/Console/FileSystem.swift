import Glibc

/// Questions to the file system.
enum FileSystem {
    static func exists(_ path: String) -> Bool { access(path, F_OK) == 0 }
}
