import Glibc
import JobModel

/// A system call's failure.
package struct SystemError: Error, Sendable, Hashable {
    package let code: Int32

    package init(_ code: Int32) {
        self.code = code
    }
}

extension SystemError: CustomStringConvertible {
    /// The system's own words: `No space left on device`.
    package var description: String {
        var buffer = [CChar](repeating: 0, count: 256)
        guard strerror_r(code, &buffer, buffer.count) == 0 else { return "error \(code)" }
        return String(decoding: buffer.prefix { $0 != 0 }.map(UInt8.init(bitPattern:)), as: UTF8.self)
    }
}

extension JobError {
    /// The kind `storage`: `action` on `path` failed.
    init(storage error: SystemError, _ action: String, _ path: String) {
        let advice =
            switch error.code {
            case ENOSPC, EDQUOT: "make room and try again"
            case EROFS, EACCES, EPERM: "ask the administrator for a folder that can be written to"
            case ENAMETOOLONG: "give a shorter path"
            case EISDIR, ENOTDIR, ELOOP: "give another path"
            default: "check the disk and try again"
            }
        self.init(.storage, "\"\(path)\" could not be \(action) (\(error)); \(advice).")
    }
}
