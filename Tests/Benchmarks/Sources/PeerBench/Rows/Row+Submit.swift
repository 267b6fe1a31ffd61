extension Row {
    /// How many durable submissions a second, many under way at once.
    static var submit: Row {
        Row(name: "submit", title: "durable submit, pipelined") { bench in
            for (connections, synced, unsynced) in [(1, 14.0, 0.75), (8, 22, 1.2)] {
                let samples = try bench.rounds(
                    5,
                    [
                        {
                            let daemon = try Deferd(bench, Deferd.waiting)
                            defer { daemon.stop() }
                            try daemon.suspendQueue()
                            return try rate(daemon.submissions(connections: connections))
                        },
                        {
                            let daemon = try Beanstalkd(bench, .always)
                            defer { daemon.stop() }
                            return try rate(daemon.puts(connections: connections))
                        },
                        {
                            let daemon = try Beanstalkd(bench, .none)
                            defer { daemon.stop() }
                            return try rate(daemon.puts(connections: connections))
                        },
                    ])
                for (peer, other, least) in [(1, "beanstalkd -f 0", synced), (2, "beanstalkd, no binlog", unsynced)] {
                    bench.add(
                        "durable submit, \(connections) connection\(connections == 1 ? "" : "s")", against: other,
                        unit: "jobs/s", target: .atLeast(least), deferd: samples[0], peer: samples[peer])
                }
            }
        }
    }

    /// Warms the daemon up, then measures for two seconds.
    private static func rate(_ load: Load) throws -> Double {
        _ = try load.run(count: 2000)
        return try load.run(seconds: 2).rate
    }
}
