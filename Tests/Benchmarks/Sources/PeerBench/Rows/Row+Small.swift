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
                        let watcher = try daemon.watcher()
                        let before = ProcessUse.seconds(of: daemon.pid)
                        let outcome = try Deferd.run(specs, over: watcher)
                        guard outcome.bytes > count * Nginx.smallSize else { throw BenchError("Results are missing.") }
                        return (outcome.rate, (ProcessUse.seconds(of: daemon.pid) - before) / Double(count) * 1e6)
                    },
                    {
                        let directory = try bench.inMemory()
                        defer { bench.delete(directory) }
                        let aria = try Aria.start(urls: urls, parallel: parallel, directory: directory)
                        return try use(of: aria)
                    },
                    {
                        return try use(of: Curl.start(urls: urls, parallel: parallel, directory: bench.inMemory()))
                    },
                ])
            bench.add(
                "small jobs", against: "aria2c -j \(parallel)", unit: "jobs/s", target: .atLeast(2),
                deferd: samples[0].map(\.rate), peer: samples[1].map(\.rate))
            bench.add(
                "small jobs", against: "curl --parallel-max \(parallel)", unit: "jobs/s", target: .atLeast(0.6),
                deferd: samples[0].map(\.rate), peer: samples[2].map(\.rate))
            bench.add(
                "small jobs, CPU", against: "curl", unit: "µs a job", figure: .own, target: .atMost(75),
                deferd: samples[0].map(\.cpu), peer: samples[2].map(\.cpu))
        }
    }

    /// Jobs a second, and microseconds of CPU a job.
    private static func use(of peer: ChildProcess) throws -> (rate: Double, cpu: Double) {
        let end = try peer.succeed()
        return (Double(count) / end.wall, end.cpu / Double(count) * 1e6)
    }

    private static let count = 10_000
    private static let parallel = 50
}
