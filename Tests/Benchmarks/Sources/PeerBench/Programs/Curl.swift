import Foundation

/// curl, for many small files or one large one.
enum Curl {
    static let options = ["--silent", "--fail", "(many: --config LIST --parallel --parallel-max N, output=/dev/null)"]

    /// Starts it for many files whose bytes nobody keeps.
    static func start(urls: [String], parallel: Int, directory: String) throws -> ChildProcess {
        let list = urls.map { "url=\($0)\noutput=/dev/null\n" }.joined()
        try list.write(toFile: "\(directory)/list", atomically: false, encoding: .utf8)
        return try ChildProcess(
            [
                "curl", "-q", "--silent", "--fail", "--config", "\(directory)/list", "--parallel", "--parallel-max",
                String(parallel),
            ])
    }

    static func start(url: String, file: String) throws -> ChildProcess {
        try ChildProcess(["curl", "-q", "--silent", "--fail", "--output", file, url])
    }
}
