import Foundation
import Testing

/// Files as tests look at them.
enum Files {
    static func bytes(_ path: String) throws -> [UInt8] { Array(try Data(contentsOf: URL(fileURLWithPath: path))) }

    static func exists(_ path: String) -> Bool {
        // Does not follow links, so that a dangling one is something too.
        (try? FileManager.default.attributesOfItem(atPath: path)) != nil
    }

    /// The names in a directory, sorted; empty without a directory.
    static func names(in path: String) -> [String] {
        ((try? FileManager.default.contentsOfDirectory(atPath: path)) ?? []).sorted()
    }

    /// The permission bits of the file at `path`.
    static func mode(of path: String) throws -> Int {
        let attributes = try FileManager.default.attributesOfItem(atPath: path)
        return try #require(attributes[.posixPermissions] as? Int)
    }
}
