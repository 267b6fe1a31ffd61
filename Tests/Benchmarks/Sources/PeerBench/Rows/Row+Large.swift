import Foundation

extension Row {
    /// The speed of downloading one large file, and its cost.
    static var large: Row {
        Row(name: "large", title: "large download, 2 GB with its sha256") { bench in
            let size = 2 << 30
            let gigabytes = Double(size) / 1e9
            let nginx = try Nginx(bench, largeSize: size)
            defer { nginx.stop() }
            let url = "\(nginx.base)/large.bin"
            let samples = try bench.rounds(
                5,
                [
                    {
                        try bench.warmMemory(bytes: size)
                        let daemon = try Deferd(bench)
                        defer { daemon.stop() }
                        let watcher = try daemon.watcher()
                        let before = ProcessUse.seconds(of: daemon.pid)
                        let spec = #"{"source":{"type":"download","url":"\#(url)","path":"large.bin"}}"#
                        let wall = try Deferd.run([spec], over: watcher).seconds
                        let cpu = ProcessUse.seconds(of: daemon.pid) - before
                        bench.delete(daemon.downloads)
                        return (wall: wall, cpu: cpu / gigabytes)
                    },
                    {
                        try bench.warmMemory(bytes: size)
                        let directory = try bench.inMemory()
                        defer { bench.delete(directory) }
                        let fetched = try Curl.start(url: url, file: "\(directory)/large.bin").succeed()
                        let digested = try ChildProcess(["openssl", "dgst", "-sha256", "\(directory)/large.bin"])
                            .succeed()
                        return (fetched.wall + digested.wall, (fetched.cpu + digested.cpu) / gigabytes)
                    },
                ])
            let peer = "curl, then openssl dgst"
            bench.add(
                "large download", against: peer, unit: "s", target: .atMost(0.6), deferd: samples[0].map(\.wall),
                peer: samples[1].map(\.wall))
            bench.add(
                "large download, CPU", against: peer, unit: "s/GB", target: .atMost(0.7), deferd: samples[0].map(\.cpu),
                peer: samples[1].map(\.cpu))
        }
    }
}
