import JobModel
import SystemPackage

/// How messages name what a source worked on: without credentials and not too long.
enum SourceMessage {
    static func quoted(_ text: String) -> String {
        shortened(Masking.masked(url: text))
    }

    /// The same for what was to be a URL and is none, which may stand in the log.
    static func quoted(noURL text: String) -> String { shortened(Masking.masked(noURL: text)) }

    private static func shortened(_ text: String) -> String { "\"\(text.shortened(to: 200))\"" }

    static func quoted(_ url: RequestURL) -> String { quoted(url.description) }

    /// Seconds without a needless fraction.
    static func seconds(_ seconds: Double) -> String { "\(JSON(seconds)) s" }
}

extension JobError {
    /// There is no room for what is to be written; it is tried again in 5 s at the earliest.
    static func withoutRoom(_ message: String) -> JobError {
        var error = JobError(.storage, message, retryable: true)
        error.postponed = 5
        return error
    }

    /// The kind `storage`: `action` on `path` failed.
    init(storage error: Errno, _ action: String, _ path: String) {
        if error == .notSupported {
            self.init(
                .storage,
                "\"\(path)\" could not be \(action): the file system keeps no ACLs; ask the administrator for one that does."
            )
            return
        }
        let advice =
            switch error {
            case .noSpace, .diskQuotaExceeded: "make room and try again"
            case .readOnlyFileSystem, .permissionDenied, .notPermitted:
                "ask the administrator for a directory that can be written to"
            case .fileNameTooLong: "give a shorter path"
            case .isDirectory, .notDirectory, .tooManySymbolicLinkLevels: "give another path"
            case .noSuchFileOrDirectory: "make what is missing, or give another path"
            default: "check the disk and try again"
            }
        self.init(.storage, "\"\(path)\" could not be \(action) (\(error)); \(advice).")
    }
}
