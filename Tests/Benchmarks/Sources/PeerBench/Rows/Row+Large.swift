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
            /// Wall seconds, and CPU seconds for each GB.
            typealias Sample = (wall: Double, cpu: Double)
            let samples = try bench.rounds(
                5,
                [
                    { () -> Sample in
                        try bench.directories.warmMemory(bytes: size)
                        let daemon = try Deferd(bench)
                        defer { daemon.stop() }
                        let watcher = try JobWatcher(daemon)
                        let before = ProcessUse.seconds(of: daemon.pid)
                        let spec = #"{"source":{"type":"download","url":"\#(url)","path":"large.bin"}}"#
                        let outcome = try watcher.run(specs: [spec], depth: 1)
                        let cpu = ProcessUse.seconds(of: daemon.pid) - before
                        bench.directories.delete(daemon.downloads)
                        return (outcome.seconds, cpu / gigabytes)
                    },
                    { () -> Sample in
                        try bench.directories.warmMemory(bytes: size)
                        let directory = try bench.directories.inMemory()
                        defer { bench.directories.delete(directory) }
                        let fetched = try Curl.start(url: url, file: "\(directory)/large.bin").succeed()
                        let digested = try ChildProcess(["openssl", "dgst", "-sha256", "\(directory)/large.bin"])
                            .succeed()
                        return (fetched.wall + digested.wall, (fetched.cpu + digested.cpu) / gigabytes)
                    },
                ])
            bench.add(
                "large download", against: "curl, then openssl dgst", unit: "s", target: nil,
                deferd: samples[0].map(\.wall), peer: samples[1].map(\.wall))
            bench.add(
                "large download, CPU", against: "curl, then openssl dgst", unit: "s/GB", target: .atMost(1),
                deferd: samples[0].map(\.cpu), peer: samples[1].map(\.cpu))
            bench.note(
                "from memory over loopback to memory that was in use just before; deferd's result has the sha256 of the file"
            )
        }
    }
}
