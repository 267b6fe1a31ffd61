extension Row {
    /// How fast many small files are fetched, one job for each, with every result pushed to a watcher.
    static var small: Row {
        Row(name: "small", title: "small jobs, 10,000 of 4 KB") { bench in
            let nginx = try Nginx(bench)
            defer { nginx.stop() }
            let urls = (0..<count).map { "\(nginx.base)/small/\($0)" }
            let specs = urls.map { #"{"source":{"type":"url","url":"\#($0)"}}"# }
            let samples = try bench.rounds(
                5,
                [
                    {
                        let daemon = try Deferd(bench, Deferd.Options(concurrency: parallel, perHost: parallel))
                        defer { daemon.stop() }
                        let outcome = try Deferd.run(specs, over: daemon.watcher())
                        guard outcome.bytes > count * Nginx.smallSize else { throw BenchError("Results are missing.") }
                        return outcome.rate
                    },
                    {
                        let directory = try bench.inMemory()
                        defer { bench.delete(directory) }
                        let aria = try Aria.start(urls: urls, parallel: parallel, directory: directory)
                        return Double(count) / (try aria.succeed().wall)
                    },
                    {
                        let curl = try Curl.start(urls: urls, parallel: parallel, directory: bench.inMemory())
                        return Double(count) / (try curl.succeed().wall)
                    },
                ])
            bench.add(
                "small jobs", against: "aria2c -j \(parallel)", unit: "jobs/s", target: .atLeast(2),
                deferd: samples[0], peer: samples[1])
            bench.add(
                "small jobs", against: "curl --parallel-max \(parallel)", unit: "jobs/s", target: .atLeast(0.5),
                deferd: samples[0], peer: samples[2])
        }
    }

    private static let count = 10_000
    private static let parallel = 50
}
