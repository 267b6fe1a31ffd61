import Foundation
import TestSupport

extension TemporaryDirectory {
    var database: String { path + "/deferd.db" }
    var log: String { database + "-wal" }

    /// The bytes of every file in it but the lock.
    func contents() throws -> [String: Data] {
        var contents: [String: Data] = [:]
        for name in try FileManager.default.contentsOfDirectory(atPath: path) where name != "deferd.lock" {
            contents[name] = try Data(contentsOf: URL(fileURLWithPath: path + "/" + name))
        }
        return contents
    }
}
