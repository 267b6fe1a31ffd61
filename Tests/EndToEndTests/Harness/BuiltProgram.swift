import Foundation

/// The programs under test, as they were built beside the tests.
enum BuiltProgram {
    static let deferd = folder + "/deferd"
    static let deferctl = folder + "/deferctl"
    static let crash = folder + "/crash"

    private static let folder: String = {
        let own = (try? FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/exe")) ?? ""
        return URL(fileURLWithPath: own).deletingLastPathComponent().path
    }()
}
