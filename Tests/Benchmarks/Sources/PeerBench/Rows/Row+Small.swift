extension Row {
    /// How fast many small files are fetched, one job for each, with every result pushed to a watcher.
    static var small: Row {
        Row(name: "small", title: "small jobs, 10,000 of 4 KB") { bench in
            let nginx = try Nginx(bench)
            defer { nginx.stop() }
            let urls = (0..<count).map { "\(nginx.base)/small/\($0)" }
            let specs = urls.map { #"{"source":{"type":"url","url":"\#($0)"}}"# }
            var share: [Double] = []
            let samples = try bench.rounds(
                5,
                [
                    {
                        let daemon = try Deferd(bench, Deferd.Options(concurrency: parallel, perHost: parallel))
                        defer { daemon.stop() }
                        let watcher = try JobWatcher(daemon)
                        let before = ProcessUse.seconds(of: daemon.pid)
                        let outcome = try watcher.run(specs: specs, depth: 128)
                        let cpu = ProcessUse.seconds(of: daemon.pid) - before
                        share.append(outcome.cpu / outcome.seconds)
                        guard outcome.bytes > count * Nginx.smallSize else { throw BenchError("Results are missing.") }
                        return Throughput(jobs: count, seconds: outcome.seconds, cpu: cpu)
                    },
                    {
                        let directory = try bench.directories.inMemory()
                        defer { bench.directories.delete(directory) }
                        let end = try Aria.start(urls: urls, parallel: parallel, directory: directory).succeed()
                        return Throughput(jobs: count, seconds: end.wall, cpu: end.cpu)
                    },
                    {
                        let directory = try bench.directories.inMemory()
                        let end = try Curl.start(urls: urls, parallel: parallel, directory: directory).succeed()
                        return Throughput(jobs: count, seconds: end.wall, cpu: end.cpu)
                    },
                ])
            bench.add(
                "small jobs", against: "aria2c -j \(parallel)", unit: "jobs/s", target: .atLeast(2),
                deferd: samples[0].map(\.rate), peer: samples[1].map(\.rate))
            bench.add(
                "small jobs", against: "curl --parallel-max \(parallel)", unit: "jobs/s", target: .atLeast(0.5),
                deferd: samples[0].map(\.rate), peer: samples[2].map(\.rate))
            for (peer, name) in [(1, "aria2c -j \(parallel)"), (2, "curl --parallel-max \(parallel)")] {
                bench.add(
                    "small jobs, CPU", against: name, unit: "µs a job", target: nil, deferd: samples[0].map(\.cpu),
                    peer: samples[peer].map(\.cpu))
            }
            bench.note(loadNote(share, for: "one that submits and reads every result"))
            bench.note(
                "\(parallel) at once with all (deferd: queue and http.perHost \(parallel)); aria2's files in memory")
        }
    }

    private static let count = 10_000
    private static let parallel = 50
}
