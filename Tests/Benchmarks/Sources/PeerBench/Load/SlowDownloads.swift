import Glibc

/// A daemon with many downloads under way that take long.
enum SlowDownloads {
    /// Starts all of them, and returns when they have run for eight seconds.
    static func start(_ bench: Bench, urls: [String]) throws -> Deferd {
        let daemon = try Deferd(bench, Deferd.Options(concurrency: urls.count, perHost: urls.count))
        let client = try daemon.connect()
        for (index, url) in urls.enumerated() {
            let spec = #"{"source":{"type":"download","url":"\#(url)","path":"\#(index)"}}"#
            _ = try client.call(Deferd.request(String(index), spec: spec))
        }
        sleep(8)
        let stats = try client.call(#"{"jsonrpc":"2.0","id":0,"method":"server.stats"}"# + "\n")
        guard stats.contains(#""running":\#(urls.count)"#) else {
            throw BenchError("Not all downloads run: \(stats)")
        }
        return daemon
    }
}
