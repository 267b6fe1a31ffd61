import Foundation

/// aria2c with a list of files to fetch.
enum Aria {
    static let options = [
        "-i LIST", "-j N", "--no-conf", "--split=1", "--file-allocation=none", "--auto-save-interval=0",
        "--async-dns=false", "--summary-interval=0", "--download-result=hide", "--quiet",
    ]

    /// Starts it; `directory` takes the files.
    static func start(urls: [String], parallel: Int, directory: String) throws -> ChildProcess {
        let list = urls.enumerated().map { "\($1)\n  out=\($0)\n" }.joined()
        try list.write(toFile: "\(directory)/list", atomically: false, encoding: .utf8)
        return try ChildProcess(
            ["aria2c", "-i", "\(directory)/list", "-j", String(parallel), "-d", directory] + options.dropFirst(2))
    }
}
