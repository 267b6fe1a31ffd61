import JobModel
import SystemPackage

/// How messages name a URL or a text: in quotation marks, without credentials, and shortened.
enum SourceMessage {
    static func quoted(_ text: String) -> String { shortened(Masking.masked(url: text)) }

    /// The same for a text that should be a URL and is not.
    static func quoted(noURL text: String) -> String { shortened(Masking.masked(noURL: text)) }

    static func quoted(_ url: RequestURL) -> String { quoted(url.description) }

    private static func shortened(_ text: String) -> String { "\"\(text.shortened(to: 200))\"" }

    /// Seconds without a needless fraction.
    static func seconds(_ seconds: Double) -> String { "\(JSON(seconds)) s" }
}

extension JobError {
    /// The disk or the user's share of it is full; the job is tried again after 5 s at the earliest.
    static func withoutRoom(_ message: String) -> JobError {
        var error = JobError(.storage, message, retryable: true)
        error.postponed = 5
        return error
    }

    /// An action on `path` failed: kind `storage`.
    init(storage error: Errno, _ action: String, _ path: String) {
        let advice =
            switch error {
            case .notSupported: "the file system may lack ACLs; ask the administrator for one that has them"
            case .noSpace, .diskQuotaExceeded: "make room and try again"
            case .readOnlyFileSystem, .permissionDenied, .notPermitted:
                ["read", "looked at"].contains(action)
                    ? "ask the administrator for the right to read it"
                    : "ask the administrator for a writable directory"
            case .fileNameTooLong: "give a shorter path"
            case .isDirectory, .notDirectory, .tooManySymbolicLinkLevels: "give another path"
            case .noSuchFileOrDirectory: "make what is missing, or give another path"
            default: "check the disk and try again"
            }
        self.init(.storage, "\"\(path)\" could not be \(action) (\(error)); \(advice).")
    }
}
