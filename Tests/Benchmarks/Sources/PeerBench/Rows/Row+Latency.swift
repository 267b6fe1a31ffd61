extension Row {
    /// How long one durable submission takes when nothing else is under way.
    static var latency: Row {
        Row(name: "latency", title: "durable submit, one at a time") { bench in
            let samples = try bench.rounds(
                5,
                [
                    {
                        let daemon = try Deferd(bench, Deferd.waiting)
                        defer { daemon.stop() }
                        try daemon.suspendQueue()
                        return try times(daemon.submissions(connections: 1, depth: 1))
                    },
                    {
                        let daemon = try Beanstalkd(bench, .always)
                        defer { daemon.stop() }
                        return try times(daemon.puts(connections: 1, depth: 1))
                    },
                ])
            for (part, target) in [(0.5, 1.8), (0.99, 1.8)] {
                let figures = samples.map { $0.map { Spread.quantile($0, part) * 1e6 } }
                bench.add(
                    "one at a time, p\(Int(part * 100))", against: "beanstalkd -f 0", unit: "µs",
                    target: .atMost(target), deferd: figures[0], peer: figures[1])
            }
        }
    }

    /// The sorted seconds that each of 4,000 requests took, after 500 to warm up.
    private static func times(_ load: Load) throws -> [Double] {
        _ = try load.run(count: 500)
        return try (0..<4000).map { _ in try load.run(count: 1).seconds }.sorted()
    }
}
