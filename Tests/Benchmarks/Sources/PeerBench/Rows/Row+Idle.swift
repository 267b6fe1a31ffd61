import Glibc

extension Row {
    /// The work of an idle daemon.
    static var idle: Row {
        Row(name: "idle", title: "idle for 20 s") { bench in
            var deferds: [ProcessUse.Change] = []
            var peers: [ProcessUse.Change] = []
            for _ in 0..<(bench.settings.rounds ?? 3) {
                let daemon = try Deferd(bench)
                let peer = try Beanstalkd(bench, .always)
                // Both have one client, which says nothing.
                let clients = (try daemon.connect(), try peer.connect())
                defer {
                    withExtendedLifetime(clients) {
                        daemon.stop(); peer.stop()
                    }
                }
                // Until the work of the start has settled.
                sleep(10)
                let before = (try ProcessUse(of: daemon.pid), try ProcessUse(of: peer.pid))
                sleep(20)
                deferds.append(try ProcessUse(of: daemon.pid).since(before.0))
                peers.append(try ProcessUse(of: peer.pid).since(before.1))
            }
            bench.add(
                "idle, context switches", against: "beanstalkd", unit: "in 20 s", figure: .difference,
                target: .atMost(2), deferd: deferds.map { Double($0.switches) },
                peer: peers.map { Double($0.switches) })
            bench.add(
                "idle, CPU time", against: "beanstalkd", unit: "ms in 20 s", figure: .difference,
                target: .atMost(10),
                deferd: deferds.map { $0.seconds * 1000 }, peer: peers.map { $0.seconds * 1000 })
            bench.note("both at the same time, ten seconds after their start, each with one silent client")
        }
    }
}
