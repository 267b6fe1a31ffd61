import Glibc

/// The environment variables of this process.
enum ProcessEnvironment {
    /// All variables by name, as they are now.
    static var variables: [String: String] {
        var variables: [String: String] = [:]
        var entry = environ
        while let pointer = entry.pointee {
            let text = String(cString: pointer)
            if let mark = text.firstIndex(of: "=") {
                variables[String(text[..<mark])] = String(text[text.index(after: mark)...])
            }
            entry += 1
        }
        return variables
    }
}

/// Questions to the file system.
enum FileSystem {
    static func exists(_ path: String) -> Bool { access(path, F_OK) == 0 }
}
