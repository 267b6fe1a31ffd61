extension Row {
    /// How long the command-line client takes.
    static var client: Row {
        Row(name: "client", title: "deferctl") { bench in
            let deferctl = bench.daemon.replacing(/[^\/]+$/, with: "deferctl")
            let nginx = try Nginx(bench)
            defer { nginx.stop() }
            let daemon = try Deferd(bench)
            defer { daemon.stop() }
            let url = "\(nginx.base)/small/1"
            let fetched = try bench.rounds(
                5,
                [
                    { try milliseconds([deferctl, "--socket", daemon.socketPath, "fetch", url]) },
                    { try milliseconds(["curl", "-q", "--silent", "--fail", url]) },
                ])
            bench.add(
                "deferctl fetch, 4 KB", against: "curl", unit: "ms", target: .atMost(1.3), deferd: fetched[0],
                peer: fetched[1])
            let started = try bench.rounds(5, [{ try milliseconds([deferctl, "--version"]) }])[0]
            bench.add(
                "deferctl --version", against: "–", unit: "ms", figure: .own, target: .atMost(10), deferd: started,
                peer: started)
        }
    }

    /// The median wall time of 20 runs of a command.
    private static func milliseconds(_ command: [String]) throws -> Double {
        Spread(try (0..<20).map { _ in try ChildProcess(command).succeed().wall * 1000 }).median
    }
}
