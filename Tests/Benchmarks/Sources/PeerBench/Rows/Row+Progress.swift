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
            var rates: [Double] = []
            var share: [Double] = []
            let samples = try bench.rounds(
                5,
                [
                    {
                        let watchers = try Watchers(daemon, count: 100)
                        // The cost of the answers, which show every job, has been paid by then.
                        _ = try watchers.read(seconds: 3)
                        let before = ProcessUse.seconds(of: daemon.pid)
                        let outcome = try watchers.read(seconds: seconds)
                        let cpu = ProcessUse.seconds(of: daemon.pid) - before
                        rates.append(Double(outcome.lines) / outcome.seconds)
                        share.append(outcome.cpu / outcome.seconds)
                        return cpu / outcome.seconds
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
            bench.note(
                "the clients received \(Int(Spread(rates).median)) notifications a second (median); 400,000 is all of them"
            )
            bench.note(loadNote(share, for: "one thread that reads for all clients"))
        }
    }

    private static let seconds = 4.0
}
