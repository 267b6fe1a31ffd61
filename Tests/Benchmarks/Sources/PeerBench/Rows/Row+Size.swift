extension Row {
    /// Whether submitting becomes slower where many jobs are stored.
    static var size: Row {
        Row(name: "size", title: "cost by size") { bench in
            for (stored, isRenewed) in [(10_000, true), (100_000, false), (1_000_000, false)] {
                var full: Deferd?
                defer { full?.stop() }
                let samples = try bench.rounds(
                    7,
                    [
                        {
                            let daemon = try filled(bench, 0)
                            defer { daemon.stop() }
                            return try rate(daemon)
                        },
                        {
                            if isRenewed { full?.stop() }
                            let daemon = try isRenewed ? filled(bench, stored) : full ?? filled(bench, stored)
                            full = daemon
                            return try rate(daemon)
                        },
                    ])
                bench.add(
                    "submit with \(stored) stored", against: "itself with none", unit: "jobs/s",
                    target: .atLeast(0.9),
                    deferd: samples[1], peer: samples[0])
            }
        }
    }

    private static func filled(_ bench: Bench, _ stored: Int) throws -> Deferd {
        let daemon = try Deferd(bench, Deferd.waiting)
        try daemon.suspendQueue()
        if stored > 0 { _ = try daemon.submissions(connections: 8).run(count: stored) }
        return daemon
    }

    /// Of 40,000 submissions after 5,000 to warm up.
    private static func rate(_ daemon: Deferd) throws -> Double {
        let load = try daemon.submissions(connections: 1)
        _ = try load.run(count: 5000)
        return try load.run(count: 40_000).rate
    }
}
