import ArgumentParser
import Foundation
import FuzzBodies
import Fuzzing
import JobModel

/// The configuration: the text of a file gives settings, or an error with its position.
///
/// It stands among the sources that read it, as these belong to a program and cannot be imported.
@main struct FuzzConfiguration {
    static func main() { Fuzzing.run { data, size in Fuzzing.check(data, size, FuzzConfiguration.check) } }

    private static let path = FileManager.default.temporaryDirectory.path + "/deferd-fuzz-\(getpid()).yaml"

    private static func check(_ input: [UInt8]) throws(Finding) {
        guard FileManager.default.createFile(atPath: path, contents: Data(input)) else { return }
        do {
            let flags = try Configuration.Flags.parse(["--config", path, "--instance", "user"])
            let configuration = try Configuration.load(flags, environment: ["HOME": "/h", "XDG_RUNTIME_DIR": "/r"])
            // Only paths that nothing is relative to, and numbers within their bounds.
            try Finding.unless(
                configuration.socketPath.hasPrefix("/") && configuration.stateDirectory.hasPrefix("/"),
                "A path is relative: \(configuration.socketPath), \(configuration.stateDirectory)")
            try Finding.unless(configuration.limits.line > 0, "There is no room for a line.")
            _ = configuration.engine
        } catch let errors as ConfigurationErrors {
            for error in errors.errors {
                try Finding.unless(
                    error.location.hasPrefix(path) && !error.reason.isEmpty, "The error does not say where: \(error)")
                try Finding.unless(
                    error.line != nil || error.key == nil, "The error of a key does not say its line: \(error)")
            }
        } catch let error as Finding { throw error } catch { throw Finding("\(error)") }
    }
}
