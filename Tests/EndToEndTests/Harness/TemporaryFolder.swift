import Foundation
import Glibc
import Testing

/// A folder of one test's own. Its path is short, as the paths of sockets must be.
struct TemporaryFolder: Sendable {
    let path: String

    init() throws {
        var template = Array("/tmp/deferd-e2e.XXXXXX".utf8CString)
        let made = mkdtemp(&template)
        try #require(made != nil, "no temporary folder: \(String(cString: strerror(errno)))")
        path = String(decoding: template.dropLast().map(UInt8.init(bitPattern:)), as: UTF8.self)
    }

    func remove() {
        try? FileManager.default.removeItem(atPath: path)
    }

    /// Runs `body` with a folder that is gone afterwards.
    static func with<Value>(_ body: (TemporaryFolder) async throws -> Value) async throws -> Value {
        let folder = try TemporaryFolder()
        defer { folder.remove() }
        return try await body(folder)
    }

    /// Writes a file and gives its path.
    @discardableResult
    func write(_ text: String, to name: String) throws -> String {
        let path = path + "/" + name
        try Data(text.utf8).write(to: URL(fileURLWithPath: path))
        return path
    }
}

/// Files as tests look at them.
enum Files {
    static func bytes(_ path: String) throws -> [UInt8] { Array(try Data(contentsOf: URL(fileURLWithPath: path))) }

    static func exists(_ path: String) -> Bool {
        // Does not follow links, so that a dangling one is something too.
        (try? FileManager.default.attributesOfItem(atPath: path)) != nil
    }

    /// The names in a folder, sorted; none where there is no folder.
    static func names(in path: String) -> [String] {
        ((try? FileManager.default.contentsOfDirectory(atPath: path)) ?? []).sorted()
    }

    /// The permission bits of what lies at `path`.
    static func mode(of path: String) throws -> Int {
        let attributes = try FileManager.default.attributesOfItem(atPath: path)
        return try #require(attributes[.posixPermissions] as? Int)
    }

    static func owner(of path: String) throws -> Int {
        let attributes = try FileManager.default.attributesOfItem(atPath: path)
        return try #require(attributes[.ownerAccountID] as? Int)
    }
}
