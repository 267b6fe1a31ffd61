import Foundation
import FuzzSourceBodies
import Fuzzing

@main struct FuzzState {
    static func main() { Fuzzing.run { data, size in Fuzzing.check(data, size) { try FuzzState.body.check($0) } } }

    private static let body: StateBody = {
        let directory = FileManager.default.temporaryDirectory.resolvingSymlinksInPath().path
        do {
            return try StateBody(directory: directory + "/deferd-fuzz-\(getpid())")
        } catch { fatalError("The database cannot be made: \(error)") }
    }()
}
