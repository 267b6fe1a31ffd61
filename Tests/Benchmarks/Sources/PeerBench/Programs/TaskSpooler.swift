import Foundation

/// tsp, Debian's task-spooler: a separate process for each job, queued by a shell, which starts `tsp` for each.
enum TaskSpooler {
    static let options = "tsp -S N; tsp -n curl -q --silent --fail --output FILE URL"

    /// Runs /bin/true this many times, `parallel` at once, and returns the seconds until all have ended.
    static func runNothing(count: Int, parallel: Int, directory: String) throws -> Double {
        let environment = ["TS_SOCKET": "\(directory)/tsp.sock", "TMPDIR": directory]
        let script = """
            exec 3>/dev/null; i=0
            while [ $i -lt \(count) ]; do tsp -n /bin/true >&3; i=$((i+1)); done
            while tsp | grep -Eq '^[0-9]+ +(queued|running)'; do :; done
            [ $(tsp | grep -c finished) -gt 0 ]
            """
        _ = try ChildProcess(["tsp", "-S", String(parallel)], environment: environment).succeed()
        defer { _ = try? ChildProcess(["tsp", "-K"], environment: environment).wait() }
        return try ChildProcess(["sh", "-c", script], environment: environment).succeed().wall
    }

    /// Queues a curl for each of `urls`, with a limit on how many run at once, and returns the seconds until all have
    /// ended.
    static func run(urls: [String], parallel: Int, directory: String) throws -> Double {
        let environment = ["TS_SOCKET": "\(directory)/tsp.sock", "TMPDIR": directory]
        let jobs = urls.enumerated().map { index, url in
            "tsp -n curl -q --silent --fail --output '\(directory)/\(index)' '\(url)' >&3"
        }
        // Asking for the list now and then is the cheapest way to wait for all of them.
        let wait = "while tsp | grep -Eq '^[0-9]+ +(queued|running)'; do :; done"
        let script = "exec 3>/dev/null\n" + (jobs + [wait]).joined(separator: "\n") + "\n"
        try script.write(toFile: "\(directory)/jobs", atomically: false, encoding: .utf8)
        // The first one starts the server.
        _ = try ChildProcess(["tsp", "-S", String(parallel)], environment: environment).succeed()
        defer { _ = try? ChildProcess(["tsp", "-K"], environment: environment).wait() }
        let end = try ChildProcess(["sh", "\(directory)/jobs"], environment: environment).succeed()
        for index in urls.indices {
            guard FileManager.default.fileExists(atPath: "\(directory)/\(index)") else {
                throw BenchError("tsp has run no curl for \(urls[index]).")
            }
        }
        return end.wall
    }
}
