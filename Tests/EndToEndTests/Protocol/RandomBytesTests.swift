import JobModel
import TestSupport
import Testing

/// Clients that send random bytes: the daemon answers each, and other clients are not affected.
@Suite struct RandomBytesTests {
    /// Only hosts of ours, and a queue that no random client names.
    private static let configuration = """
        policy:
          allowHosts: ["127.0.0.1"]
        queues:
          honest: 2
        """

    /// The lines to change at random. No change of a few bytes makes one reach the honest client's jobs or queue.
    private static let lines = [
        #"{"jsonrpc":"2.0","id":1,"method":"server.info"}"#,
        #"{"jsonrpc":"2.0","id":"a","method":"server.stats","params":{}}"#,
        #"{"jsonrpc":"2.0","id":2,"method":"job.submit","params":{"source":{"type":"value","value":[1,-2.50,"ä\n\ud83d\ude42",{"a":null}]},"watch":true}}"#,
        #"{"jsonrpc":"2.0","id":3,"method":"job.submit","params":{"source":{"type":"each","in":[1,2,3],"job":{"source":{"type":"value","value":"{{item}}"}}},"then":[{"then":{"return":"{{input/0/value}}"}},{"finally":{"throw":{"message":"{{job/id}}"}}}],"key":"k","tags":["t"]}}"#,
        #"{"jsonrpc":"2.0","id":4,"method":"job.submit","params":{"source":{"type":"url","url":"http://127.0.0.1:1/","headers":{"X":"1"}},"retry":{"max":1,"initial":0.01,"factor":2},"timeout":1.5,"priority":7,"deadline":5}}"#,
        #"{"jsonrpc":"2.0","id":5,"method":"job.explain","params":{"source":{"type":"download","url":"http://127.0.0.1:1/","path":"a","checksum":"sha256:00"}}}"#,
        #"{"jsonrpc":"2.0","id":6,"method":"job.list","params":{"state":["queued","failed"],"limit":10,"order":"oldest","after":3,"tag":"t"}}"#,
        #"{"jsonrpc":"2.0","id":7,"method":"job.get","params":{"job":1}}"#,
        #"{"jsonrpc":"2.0","id":8,"method":"job.wait","params":{"jobs":[1,2,3],"timeout":0.05}}"#,
        #"{"jsonrpc":"2.0","id":9,"method":"job.watch","params":{"tag":"t","interval":0.1,"children":true}}"#,
        #"{"jsonrpc":"2.0","id":10,"method":"job.unwatch","params":{"watch":"w1"}}"#,
        #"{"jsonrpc":"2.0","id":11,"method":"job.result","params":{"job":2,"offset":0,"length":9}}"#,
        #"{"jsonrpc":"2.0","id":12,"method":"job.cancel","params":{"job":"none"}}"#,
        #"{"jsonrpc":"2.0","id":13,"method":"job.retry","params":{"job":"none","from":"start"}}"#,
        #"{"jsonrpc":"2.0","id":14,"method":"job.remove","params":{"job":"none"}}"#,
        #"{"jsonrpc":"2.0","id":15,"method":"queue.set","params":{"queue":"other","concurrency":3,"suspended":false}}"#,
        #"{"jsonrpc":"2.0","method":"queue.list"}"#,
        #"[{"jsonrpc":"2.0","id":16,"method":"server.info"},{"jsonrpc":"2.0","method":"server.info"},1,[]]"#,
    ]

    @Test func daemon_answersOthers_whateverBytesComeInWhateverPieces() async throws {
        let seed = UInt64.random(in: 1 ... .max)
        var random = SeededGenerator(seed: seed)
        try await Daemon.run(configuration: Self.configuration) { daemon in
            let honest = try daemon.connect()
            for round in 1...4 {
                let wires = try (0..<12).map { _ in try daemon.connect() }
                var pieces = wires.map { _ in Self.pieces(of: Self.stream(&random), &random)[...] }
                // Each connection's next piece in turn, so that all are in the middle of a line at once.
                while pieces.contains(where: { !$0.isEmpty }) {
                    for (index, wire) in wires.enumerated() {
                        if let piece = pieces[index].popFirst() { wire.send(raw: piece) }
                    }
                }
                let job = try await honest.run(.value(JSON(round), ["queue": "honest"]))
                #expect(job["state"] == "succeeded" && job["result"] == JSON(round), "seed \(seed): \(job)")
                for wire in wires {
                    wire.sendLine("")
                    wire.sendLine(Wire.request(-1, "server.info", [:]))
                    let answer = try await wire.answer(-1)
                    #expect(answer["result"] != nil || answer["error"]?["code"] == -32003, "seed \(seed): \(answer)")
                    for line in wire.waiting {
                        #expect(line.json["jsonrpc"] == "2.0" || line.json.array != nil, "seed \(seed): \(line)")
                        #expect(!line.text.contains("-32603"), "seed \(seed): \(line)")
                    }
                    wire.close()
                }
                try await honest.eventually { $0["connections"] == 1 }
            }
            let log = daemon.process.errorText
            #expect(!log.contains("defect") && !log.contains("critical"), "seed \(seed): \(log.suffix(2000))")
        }
    }

    /// Valid lines, lines with a few changed bytes, and bytes that are not lines at all.
    private static func stream(_ random: inout SeededGenerator) -> [UInt8] {
        var stream: [UInt8] = []
        for _ in 0..<40 {
            if random.chance(0.1) {
                stream += (0..<Int.random(in: 1...400, using: &random)).map { _ in
                    UInt8.random(in: 0...255, using: &random)
                }
            } else {
                stream += changed(Array(random.pick(lines).utf8), &random)
            }
            if random.chance(0.95) { stream.append(UInt8(ascii: "\n")) }
        }
        return stream
    }

    private static func changed(_ line: [UInt8], _ random: inout SeededGenerator) -> [UInt8] {
        var line = line
        for _ in 0..<Int.random(in: 0...3, using: &random) where line.count > 1 {
            let index = random.pick(Array(line.indices))
            switch Int.random(in: 0..<5, using: &random) {
            case 0: line[index] = UInt8.random(in: 0...255, using: &random)
            case 1: line[index] ^= 1 << UInt8.random(in: 0..<8, using: &random)
            case 2: line.remove(at: index)
            case 3: line.insert(random.pick(Array("{}[]\",:0-9.eE\\ntfu\r\0".utf8)), at: index)
            default:
                line.replaceSubrange(index..<index, with: line[..<index].suffix(Int.random(in: 1...80, using: &random)))
            }
        }
        return line
    }

    private static func pieces(of stream: [UInt8], _ random: inout SeededGenerator) -> [[UInt8]] {
        var pieces: [[UInt8]] = []
        var rest = stream[...]
        while !rest.isEmpty {
            let piece = rest.prefix(random.chance(0.2) ? 1 : Int.random(in: 1...2000, using: &random))
            pieces.append(Array(piece))
            rest = rest.dropFirst(piece.count)
        }
        return pieces
    }
}
