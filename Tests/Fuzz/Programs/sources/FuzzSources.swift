import Foundation
import FuzzSourceBodies
import Fuzzing

@main struct FuzzSources {
    static func main() { Fuzzing.run { data, size in Fuzzing.check(data, size) { try FuzzSources.body.check($0) } } }

    private static let body: ResponseBody = {
        let directory = FileManager.default.temporaryDirectory.resolvingSymlinksInPath().path
        do { return try ResponseBody(directory: directory + "/deferd-fuzz-\(getpid())") } catch {
            fatalError("There is no server: \(error)")
        }
    }()
}
