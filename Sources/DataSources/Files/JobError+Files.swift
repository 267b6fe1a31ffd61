import JobModel
import SystemPackage

extension JobError {
    /// The kind `storage`: `action` on `path` failed.
    init(storage error: Errno, _ action: String, _ path: String) {
        let advice =
            switch error {
            case .noSpace, .diskQuotaExceeded: "make room and try again"
            case .readOnlyFileSystem, .permissionDenied, .notPermitted:
                "ask the administrator for a folder that can be written to"
            case .fileNameTooLong: "give a shorter path"
            case .isDirectory, .notDirectory, .tooManySymbolicLinkLevels: "give another path"
            default: "check the disk and try again"
            }
        self.init(.storage, "\"\(path)\" could not be \(action) (\(error)); \(advice).")
    }
}
