extension Row {
    /// How long it takes from exec until the daemon serves.
    static var start: Row {
        Row(name: "start", title: "start, empty and with 100,000 jobs") { bench in
            let empty = try bench.rounds(9, [{ try deferdStart(bench, state: nil) }])[0]
            bench.add(
                "start, empty store", against: "–", unit: "ms", figure: .own, target: .atMost(40), deferd: empty,
                peer: empty)
            let states = (try bench.onDisk(), try bench.onDisk())
            let daemon = try Deferd(bench, Deferd.waiting, state: states.0)
            try daemon.suspendQueue()
            _ = try daemon.submissions(connections: 1).run(count: 100_000)
            daemon.stop()
            let peer = try Beanstalkd(bench, .often, state: states.1)
            _ = try peer.puts(connections: 1).run(count: 100_000)
            peer.stop()
            let full = try bench.rounds(
                9,
                [
                    { try deferdStart(bench, state: states.0) },
                    { try beanstalkdStart(bench, state: states.1) },
                ])
            bench.add(
                "start, 100,000 jobs", against: "beanstalkd -b", unit: "ms", target: .atMost(0.4), deferd: full[0],
                peer: full[1])
            bench.note(
                "start: from exec to the first answer; both were stopped with SIGTERM before")
        }
    }

    private static func deferdStart(_ bench: Bench, state: String?) throws -> Double {
        let daemon = try Deferd(bench, Deferd.waiting, state: state)
        defer { daemon.stop() }
        return daemon.startTime * 1000
    }

    private static func beanstalkdStart(_ bench: Bench, state: String) throws -> Double {
        let daemon = try Beanstalkd(bench, .always, state: state)
        defer { daemon.stop() }
        return daemon.startTime * 1000
    }
}
