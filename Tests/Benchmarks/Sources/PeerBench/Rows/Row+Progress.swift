import Glibc

extension Row {
    /// The cost of reporting the progress of a thousand jobs to a hundred clients.
    static var progress: Row {
        Row(name: "progress", title: "progress of 1,000 jobs to 100 clients") { bench in
            let nginx = try Nginx(bench)
            defer { nginx.stop() }
            let urls = (0..<1000).map { "\(nginx.base)/slow/\($0)" }
            let daemon = try SlowDownloads.start(bench, urls: urls)
            defer { daemon.stop() }
            let samples = try bench.rounds(
                5,
                [
                    {
                        let watchers = try (0..<100).map { _ in try daemon.watcher() }
                        // The cost of the answers, which show every job, has been paid by then.
                        try read(watchers, seconds: 3)
                        let (before, watch) = (ProcessUse.seconds(of: daemon.pid), Stopwatch())
                        try read(watchers, seconds: seconds)
                        return (ProcessUse.seconds(of: daemon.pid) - before) / watch.seconds
                    },
                    {
                        // The watches of the round before must be gone.
                        sleep(1)
                        let (before, watch) = (ProcessUse.seconds(of: daemon.pid), Stopwatch())
                        sleep(UInt32(seconds))
                        return (ProcessUse.seconds(of: daemon.pid) - before) / watch.seconds
                    },
                ])
            bench.add(
                "progress, 1,000 jobs to 100 clients", against: "itself unwatched", unit: "cores",
                figure: .difference,
                target: .atMost(0.1), deferd: samples[0], peer: samples[1])
        }
    }

    private static let seconds = 4.0

    private static func read(_ sockets: [LocalSocket], seconds: Double) throws {
        let watch = Stopwatch()
        while watch.seconds < seconds {
            for socket in try LocalSocket.readable(of: sockets) { try socket.receive { _ in } }
        }
    }
}
