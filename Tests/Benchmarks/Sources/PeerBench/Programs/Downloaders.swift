import Foundation

/// curl, for many small files or one large one.
enum Curl {
    /// Starts it for many files whose contents are discarded.
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

/// aria2c with a list of files to fetch.
enum Aria {
    private static let options = [
        "--no-conf", "--file-allocation=none", "--auto-save-interval=0",
        "--async-dns=false", "--summary-interval=0", "--download-result=hide", "--quiet",
    ]

    /// Starts it for one file over several connections, as many as it can have from the start on.
    static func start(url: String, connections: Int, directory: String) throws -> ChildProcess {
        try ChildProcess(
            ["aria2c", url, "-x\(connections)", "-s\(connections)", "-k1M", "-d", directory, "-o", "file"]
                + options)
    }

    /// Starts it; `directory` takes the files.
    static func start(urls: [String], parallel: Int, directory: String) throws -> ChildProcess {
        let list = urls.enumerated().map { "\($1)\n  out=\($0)\n" }.joined()
        try list.write(toFile: "\(directory)/list", atomically: false, encoding: .utf8)
        return try ChildProcess(
            ["aria2c", "-i", "\(directory)/list", "-j", String(parallel), "-d", directory, "--split=1"] + options)
    }
}
