extension Row {
    /// How long one durable submission takes when nothing else is under way.
    static var latency: Row {
        Row(name: "latency", title: "durable submit, one at a time") { bench in
            let samples = try bench.rounds(
                5,
                [
                    {
                        let daemon = try Deferd(bench, Deferd.waiting())
                        defer { daemon.stop() }
                        try daemon.suspendQueue()
                        return try times(daemon.connect(), request: Deferd.submission, Deferd.answers)
                    },
                    {
                        let daemon = try Beanstalkd(bench, .always)
                        defer { daemon.stop() }
                        return try times(daemon.connect(), request: Beanstalkd.put, Beanstalkd.answers)
                    },
                ])
            for (part, target) in [(0.5, 1.0), (0.99, 1.5)] {
                let figures = samples.map { $0.map { Spread.quantile($0, part) * 1e6 } }
                bench.add(
                    "one at a time, p\(Int(part * 100))", against: "beanstalkd -f 0", unit: "µs",
                    target: .atMost(target), deferd: figures[0], peer: figures[1])
            }
            bench.note("4,000 submissions a round after 500 to warm up, on one connection")
        }
    }

    /// The sorted seconds that each request took.
    private static func times(
        _ socket: LocalSocket, request: (String) -> String, _ answers: AnswerScanner
    ) throws -> [Double] {
        let bytes = Array(request("1000").utf8)
        let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: 4096, alignment: 16)
        defer { buffer.deallocate() }
        var scanner = answers
        var times: [Double] = []
        for index in 0..<4500 {
            let watch = Stopwatch()
            try bytes.withUnsafeBytes { try socket.send($0) }
            var lines = 0
            while lines == 0 {
                let count = try socket.receive(into: buffer)
                lines = try scanner.lines(in: UnsafeRawBufferPointer(rebasing: buffer[..<count]))
            }
            if index >= 500 { times.append(watch.seconds) }
        }
        return times.sorted()
    }
}
