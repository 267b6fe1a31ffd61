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
                        _ = try Deferd.run([spec], over: watcher)
                        let cpu = ProcessUse.seconds(of: daemon.pid) - before
                        bench.delete(daemon.downloads)
                        return cpu / gigabytes
                    },
                    {
                        try bench.warmMemory(bytes: size)
                        let directory = try bench.inMemory()
                        defer { bench.delete(directory) }
                        let fetched = try Curl.start(url: url, file: "\(directory)/large.bin").succeed()
                        let digested = try ChildProcess(["openssl", "dgst", "-sha256", "\(directory)/large.bin"])
                            .succeed()
                        return (fetched.cpu + digested.cpu) / gigabytes
                    },
                ])
            bench.add(
                "large download, CPU", against: "curl, then openssl dgst", unit: "s/GB", target: .atMost(1),
                deferd: samples[0], peer: samples[1])
        }
    }
}
