import Foundation
import JobModel
import Testing

/// A JSON file that is committed with the tests and has to be read by every later version.
struct Fixture: Sendable, CustomTestStringConvertible {
    let name: String
    let json: JSON

    var testDescription: String { name }

    /// The fixtures in a folder, by name.
    static func all(in folder: String) throws -> [Fixture] {
        let root = Bundle.module.bundleURL.appendingPathComponent("Fixtures/\(folder)")
        let files = try FileManager.default.contentsOfDirectory(at: root, includingPropertiesForKeys: nil)
        return try files.filter { $0.pathExtension == "json" }
            .sorted { $0.lastPathComponent < $1.lastPathComponent }
            .map { Fixture(name: $0.lastPathComponent, json: try JSON(parsing: [UInt8](Data(contentsOf: $0)))) }
    }
}
