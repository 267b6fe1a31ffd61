import Foundation

/// The programs under test, as they were built beside the tests.
enum BuiltProgram {
    static let deferd = directory + "/deferd"
    static let deferctl = directory + "/deferctl"
    static let crash = directory + "/crash"

    private static let directory: String = {
        let own = (try? FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/exe")) ?? ""
        return URL(fileURLWithPath: own).deletingLastPathComponent().path
    }()
}
