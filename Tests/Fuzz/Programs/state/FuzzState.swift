import Foundation
import FuzzSourceBodies
import Fuzzing

@main struct FuzzState {
    static func main() { Fuzzing.run { data, size in Fuzzing.check(data, size) { try FuzzState.body.check($0) } } }

    private static let body: StateBody = {
        let directory = FileManager.default.temporaryDirectory.resolvingSymlinksInPath().path
        do {
            let database = try Data(contentsOf: URL(filePath: "Tests/JobStoreTests/Fixtures/version-8.db"))
            return try StateBody(directory: directory + "/deferd-fuzz-\(getpid())", database: Array(database))
        } catch { fatalError("There is no database: \(error)") }
    }()
}
