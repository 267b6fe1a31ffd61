import Glibc
import Testing

@testable import DeferctlCommands

/// A file that goes with its last reference.
final class TemporaryFile: Sendable {
    let path: String

    init(_ bytes: [UInt8]) throws {
        var template = Array("/tmp/deferctl-XXXXXX".utf8CString)
        let descriptor = mkstemp(&template)
        try #require(descriptor >= 0)
        path = template.withUnsafeBufferPointer { $0.baseAddress.map(String.init(cString:)) ?? "" }
        try FileOutput(descriptor: descriptor, name: path).write(bytes)
        close(descriptor)
    }

    deinit { unlink(path) }
}
