import Foundation
import Glibc

/// A directory of a test, removed with this object. Its path is short, as paths of sockets must be.
package final class TemporaryDirectory: Sendable {
    package let path: String

    package init() throws {
        var template = Array("/tmp/deferd-test.XXXXXX".utf8CString)
        guard mkdtemp(&template) != nil else { throw SystemCallError(errno) }
        path = String(decoding: template.dropLast().map(UInt8.init(bitPattern:)), as: UTF8.self)
    }

    deinit { remove() }

    package func remove() {
        try? FileManager.default.removeItem(atPath: path)
    }

    /// Runs `body` with a directory that is removed afterwards.
    package static func with<Value>(_ body: (TemporaryDirectory) async throws -> Value) async throws -> Value {
        let directory = try TemporaryDirectory()
        defer { directory.remove() }
        return try await body(directory)
    }

    /// Writes a file and returns its path.
    @discardableResult
    package func write(_ text: String, to name: String) throws -> String {
        let path = path + "/" + name
        try Data(text.utf8).write(to: URL(fileURLWithPath: path))
        return path
    }

    /// Writes a program for `/bin/sh` and returns its path. Another process writes it: a file that this one writes could still
    /// be open in a child that another test is just starting, and such a file cannot be executed.
    package func write(script: String, to name: String) throws -> String {
        let path = path + "/" + name
        let written = try SystemProgram([
            "/bin/sh", "-c", #"printf '#!/bin/sh\n%s\n' "$1" >"$0" && chmod 755 "$0""#, path, script,
        ])
        if written.status != 0 { throw SystemCallError(EIO) }
        return path
    }

    /// The entries of the directory, sorted.
    package var names: [String] { ((try? FileManager.default.contentsOfDirectory(atPath: path)) ?? []).sorted() }
}
