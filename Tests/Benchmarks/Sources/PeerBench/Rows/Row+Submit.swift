import Glibc

extension Row {
    /// How many durable submissions a second, many under way at once.
    static var submit: Row {
        Row(name: "submit", title: "durable submit, pipelined") { bench in
            for connections in [1, 8] {
                var share: [Double] = []
                let samples = try bench.rounds(
                    5,
                    [
                        {
                            let daemon = try Deferd(bench, Deferd.waiting())
                            defer { daemon.stop() }
                            try daemon.suspendQueue()
                            return try measured(
                                daemon.pid, daemon.submissions(connections: connections, depth: depth), &share)
                        },
                        {
                            let daemon = try Beanstalkd(bench, .always)
                            defer { daemon.stop() }
                            return try measured(
                                daemon.pid, daemon.puts(connections: connections, depth: depth), &share)
                        },
                        {
                            let daemon = try Beanstalkd(bench, .none)
                            defer { daemon.stop() }
                            return try measured(
                                daemon.pid, daemon.puts(connections: connections, depth: depth), &share)
                        },
                    ])
                let name = "durable submit, \(connections) connection\(connections == 1 ? "" : "s")"
                bench.add(
                    name, against: "beanstalkd -f 0", unit: "jobs/s", target: .atLeast(12),
                    deferd: samples[0].map(\.rate), peer: samples[1].map(\.rate))
                bench.add(
                    name, against: "beanstalkd, no binlog", unit: "jobs/s", target: .atLeast(1),
                    deferd: samples[0].map(\.rate), peer: samples[2].map(\.rate))
                bench.add(
                    name + ", CPU", against: "beanstalkd, no binlog", unit: "µs a job", target: nil,
                    deferd: samples[0].map(\.cpu), peer: samples[2].map(\.cpu))
                bench.note(loadNote(share, for: "\(connections) connection(s)"))
            }
            bench.note(
                "specs and bodies of 200 bytes, \(depth) under way on each connection, 2 s a round, new daemons each")
        }
    }

    /// Requests under way on each connection.
    private static let depth = 128

    /// Warms the daemon up, then measures for two seconds.
    private static func measured(_ daemon: pid_t, _ load: PipelinedLoad, _ share: inout [Double]) throws -> Throughput {
        _ = try load.run(count: 2000)
        let before = ProcessUse.seconds(of: daemon)
        let outcome = try load.run(seconds: 2)
        share.append(outcome.cpu / outcome.seconds)
        let cpu = ProcessUse.seconds(of: daemon) - before
        return Throughput(jobs: outcome.answers, seconds: outcome.seconds, cpu: cpu)
    }

    static func loadNote(_ share: [Double], for what: String) -> String {
        let spread = Spread(share)
        return "the load took \(percent(spread.low)) to \(percent(spread.high)) of one core (\(what))"
    }

    static func percent(_ share: Double) -> String { "\(Int((share * 100).rounded())) %" }
}
