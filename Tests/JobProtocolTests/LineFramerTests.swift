import JobProtocol
import Testing

@Suite struct LineFramerTests {
    private func frames(of text: String) -> [LineFramer.Frame] {
        var framer = LineFramer(limit: 100)
        return framer.feed(bytes(text))
    }

    private func line(_ text: String) -> LineFramer.Frame { .line(bytes(text)) }

    @Test func lines_areCut_atLF_andEmptyOnesIgnored() {
        #expect(frames(of: "a\nbc\n{}") == [line("a"), line("bc")])
        #expect(frames(of: "\n\n\r\n\r\na\r\n\nb\n") == [line("a"), line("b")])
        #expect(frames(of: "a\rb\n \n") == [line("a\rb"), line(" ")], "a CR elsewhere belongs to the line")
    }

    @Test func lineTooLong_isToldOnce_andAtOnce() {
        var framer = LineFramer(limit: 10)
        let piece = [UInt8](repeating: UInt8(ascii: "x"), count: 8)
        #expect(framer.feed(piece).isEmpty)
        #expect(framer.feed(piece) == [.tooLong], "the client need not send its end")
        for _ in 0..<1000 { #expect(framer.feed(piece).isEmpty) }
        #expect(framer.feed(bytes("tail\nnext\n")) == [line("next")])
        #expect(framer.feed(piece + piece + bytes("\n") + piece + piece) == [.tooLong, .tooLong])
    }

    /// Bytes that the framer has room for.
    private func room(of framer: LineFramer) -> Int {
        Mirror(reflecting: framer).children.compactMap { ($0.value as? [UInt8])?.capacity }.reduce(0, +)
    }

    @Test func memory_isNotKept_forWhatIsDiscardedOrWasLong() {
        var framer = LineFramer(limit: 1 << 20)
        let piece = [UInt8](repeating: UInt8(ascii: "x"), count: 1 << 18)
        for _ in 0..<3 { _ = framer.feed(piece) }
        #expect(room(of: framer) >= 3 << 18, "the counting works")
        _ = framer.feed(piece)
        #expect(framer.feed(piece) == [.tooLong])
        for _ in 0..<10 {
            _ = framer.feed(piece)
            #expect(room(of: framer) == 0)
        }
        #expect(framer.feed(bytes("\n")).isEmpty)
        for _ in 0..<3 { _ = framer.feed(piece) }
        #expect(framer.feed(bytes("\n")).count == 1)
        #expect(room(of: framer) <= 64 << 10)
    }

    @Test func lines_areThoseOfAModel_whateverComes() {
        var state: UInt64 = 11
        func random(_ range: Int) -> Int {
            state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
            return Int(state >> 33) % range
        }
        for _ in 0..<500 {
            let limit = random(8)
            let stream = (0..<random(80)).map { _ in
                [UInt8(ascii: "\n"), UInt8(ascii: "\r"), UInt8(ascii: "x")][random(3)]
            }
            var expected: [LineFramer.Frame] = []
            let parts = stream.split(separator: UInt8(ascii: "\n"), omittingEmptySubsequences: false)
            for (index, part) in parts.enumerated() {
                let isLast = index == parts.count - 1
                let line = part.last == UInt8(ascii: "\r") ? part.dropLast() : part
                if isLast {
                    // Without its end a line is too long as soon as not even a CR could make it fit.
                    if part.count > limit + 1 { expected.append(.tooLong) }
                } else if line.count > limit {
                    expected.append(.tooLong)
                } else if !line.isEmpty {
                    expected.append(.line(Array(line)))
                }
            }
            var framer = LineFramer(limit: limit)
            var found: [LineFramer.Frame] = []
            var rest = stream[...]
            while !rest.isEmpty {
                let size = 1 + random(rest.count)
                found += framer.feed(Array(rest.prefix(size)))
                rest = rest.dropFirst(size)
            }
            #expect(found == expected, "\(stream) with limit \(limit)")
        }
    }

    @Test func lastLine_countsWithoutItsEnd_whenTheStreamEnds() {
        for (text, expected) in [
            ("a\nb", line("b")), ("a\nb\r", line("b")), ("a\n", nil), ("a\n\r", nil),
            (String(repeating: "x", count: 200), nil),
        ] as [(String, LineFramer.Frame?)] {
            var framer = LineFramer(limit: 100)
            _ = framer.feed(bytes(text))
            var last: [LineFramer.Frame] = []
            framer.finish(into: &last)
            #expect(last == [expected].compactMap(\.self), "\(text)")
            #expect(framer.partialSize == 0)
        }
    }
}
