import JobModel
import NIOCore
import TestOrigin
import Testing

@testable import DataSources

@Suite struct InflaterTests {
    private static func decoded(
        _ bytes: [UInt8], _ codings: [String] = ["gzip"], by step: Int, limit: Int = .max
    ) throws -> (bytes: [UInt8], longest: Int) {
        let inflater = try Inflater(codings, limit: limit)
        var (all, longest) = ([UInt8](), 0)
        for start in stride(from: 0, to: bytes.count, by: step) {
            try inflater.add([ByteBuffer(bytes: bytes[start..<min(start + step, bytes.count)])])
            while let block = try inflater.next() {
                all += Array(block.readableBytesView)
                longest = max(longest, block.readableBytes)
            }
        }
        try inflater.finish()
        return (all, longest)
    }

    /// Some hundred bytes stand for a million, and come out in pieces all the same.
    @Test(arguments: ["gzip", "deflate"], [1, 100, 10_000]) func text_comesOutInPieces(
        coding: String, step: Int
    ) throws {
        let text = String(repeating: "abc", count: 50_000) + "end"
        let compressed = try Compression.compressed(text, coding)
        #expect(compressed.count < 2048)
        let (bytes, longest) = try Self.decoded(compressed, [coding], by: step)
        #expect(bytes == Array(text.utf8))
        #expect(longest <= 64 << 10)
    }

    /// So that others get their turn between members without content, of which a few bytes may hold millions.
    @Test(arguments: [false, true]) func next_comesBack_afterEachMember(isTwice: Bool) throws {
        let members = Array(repeating: try Compression.compressed("", "gzip"), count: 1000).flatMap(\.self)
        let size = UInt16(members.count)
        // A block of deflate that is not compressed.
        let block: [UInt8] = [0x78, 0x9C, 0] + [size, ~size].flatMap { [UInt8($0 & 0xFF), UInt8($0 >> 8)] } + members
        let inflater = try Inflater(isTwice ? ["deflate", "gzip"] : ["gzip"], limit: .max)
        try inflater.add([ByteBuffer(bytes: isTwice ? block : members)])
        var count = 0
        while try inflater.next() != nil { count += 1 }
        #expect(count >= 1000)
    }

    /// Blocks that hold nothing can follow each other for ever.
    @Test func bodyWithoutContent_isTooLarge_onceItIsLong() async throws {
        let empty: [UInt8] = [0, 0, 0, 0xFF, 0xFF]
        let steps: [OriginStep] =
            [.head("200 OK", [("Content-Encoding", "deflate")]), .send([0x78, 0x9C])]
            + Array(repeating: .send(Array(repeating: empty, count: 1000).flatMap(\.self)), count: 100)
        try await Workbench.run(against: { _, _ in steps + [.hold] }) {
            $0.limits.body = 100_000
        } _: { origin, bench in
            for type in ["url", "json"] {
                let error = try await bench.failure(["type": .string(type), "url": .string(origin.url("/x"))])
                #expect(error.kind == .tooLarge, "\(error)")
            }
        }
    }
}
