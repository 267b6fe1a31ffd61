import DataSources
import DeferredKit
import Foundation

/// A program as a user of the library would write it: it fetches a list and then the listed files, two at a time, with
/// progress, and prints their digests. It exits with 0 if all results are right.
@main struct App {
    struct Release: Decodable, Sendable {
        let assets: [String]
    }

    static func main() async throws {
        let server = try LoopbackServer(#"{"assets": ["first.bin", "second.bin", "../third.bin"]}"#)
        let directory = FileManager.default.temporaryDirectory.appending(path: "outside-\(UUID().uuidString)")
        defer { try? FileManager.default.removeItem(at: directory) }

        let queue = WorkQueue(concurrency: 2)
        let release = JSONSource(server.url + "release.json", as: Release.self).start()
        let files = release.flatMap { release in
            Deferred.settled(
                release.assets.map { name in
                    let file = DownloadSource(server.url + name, to: name, in: directory.path).start(on: queue)
                    file.onProgress { print(name, $0.fraction ?? 0) }
                    return file
                }
            ).erased()
        }
        let outcomes = try await files.timeout(.seconds(30)).get()
        var refused: [SourceError.Code] = []
        for outcome in outcomes {
            do {
                let file = try outcome.get()
                print(file.path, file.size, file.sha256)
            } catch let error as SourceError {
                print(error)
                refused.append(error.code)
            }
        }
        let written = try FileManager.default.contentsOfDirectory(atPath: directory.path).sorted()
        // A name that leads out of the directory is not a file name.
        guard refused == [.policy], written == ["first.bin", "second.bin"] else {
            print("Not as it should be:", refused, written)
            exit(1)
        }
    }
}
