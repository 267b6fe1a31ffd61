extension Row {
    /// How fast programs that do nothing are run, one job for each, with every result pushed to a watcher.
    static var programs: Row {
        Row(name: "programs", title: "programs, 10,000 of /bin/true, 8 at once") { bench in
            let specs = [String](
                repeating: #"{"source":{"type":"program","command":["/bin/true"]}}"#, count: count)
            let samples = try bench.rounds(
                5,
                [
                    {
                        var options = Deferd.Options(concurrency: parallel)
                        options.runsAnyProgram = true
                        let daemon = try Deferd(bench, options)
                        defer { daemon.stop() }
                        return try Deferd.run(specs, over: daemon.watcher()).rate
                    },
                    {
                        let script = "seq \(count) | xargs -P\(parallel) -n1 /bin/true"
                        return Double(count) / (try ChildProcess(["sh", "-c", script]).succeed().wall)
                    },
                ])
            bench.add(
                "programs", against: "xargs -P\(parallel)", unit: "programs/s", target: .atLeast(0.9),
                deferd: samples[0], peer: samples[1])
        }
    }

    private static let count = 10_000
    private static let parallel = 8
}
