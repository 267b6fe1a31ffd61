import DataSources
package import FuzzBodies
import NIOCore

/// The parser of HTTP responses and the decoder of their bodies: bytes in any splitting.
///
/// The inputs are those of ``ResponseBody``: the first byte selects the source, the rest is the server's answer.
package enum AnswerBody {
    private static let longestHeader = 8 << 10
    private static let longestBody = 128 << 10

    /// How one response was read.
    private struct Reading: Equatable {
        var informational = 0
        var head: [String] = []
        var body: [UInt8] = []
        var isComplete = false
        var isFailed = false
        var isDecoded = false
    }

    package static func check(_ input: [UInt8]) throws(Finding) {
        guard let kind = input.first, input.count > 1 else { return }
        let (stream, isHead) = (ByteBuffer(bytes: input.dropFirst()), kind % 8 == 1)
        let whole = try reading(stream, by: stream.readableBytes, isHead: isHead)
        // A long input in few pieces, so that most inputs a second have all sizes.
        let size = max(Int(kind / 8) + 1, stream.readableBytes / 64)
        try Finding.unless(
            try reading(stream, by: size, isHead: isHead) == whole,
            "In pieces the response is another than at once: \(whole)")
    }

    private static func reading(_ stream: ByteBuffer, by size: Int, isHead: Bool) throws(Finding) -> Reading {
        var stream = stream
        var parser = AnswerParser(limit: longestHeader, isHead: isHead)
        var (reading, blocks, codings) = (Reading(), [ByteBuffer](), [String]())
        do {
            while !reading.isComplete, let piece = stream.readSlice(length: min(size, stream.readableBytes)),
                piece.readableBytes > 0
            {
                parser.append(piece)
                while let event = try parser.next() {
                    switch event {
                    case .informational: reading.informational += 1
                    case .head(let head):
                        try Finding.unless((200...999).contains(head.status), "The status is \(head.status).")
                        reading.head =
                            ["\(head.status) \(head.reason)"] + head.headers.map { "\($0.name): \($0.value)" }
                        codings = Inflater.codings(head.headers)
                    case .body(let block):
                        try Finding.unless(block.readableBytes > 0 && !isHead, "A part of the body is empty.")
                        blocks.append(block)
                    case .end: reading.isComplete = true
                    }
                }
            }
            reading.isComplete = reading.isComplete || parser.endsWithConnection
        } catch let finding as Finding {
            throw finding
        } catch {
            reading.isFailed = true
        }
        for block in blocks { reading.body += block.readableBytesView }
        if !codings.isEmpty, Inflater.decodes(codings), let decoded = decoded(blocks, codings) {
            (reading.body, reading.isDecoded) = (decoded, true)
        }
        return reading
    }

    /// Nil if the body cannot be decoded, or is too long.
    private static func decoded(_ blocks: [ByteBuffer], _ codings: [String]) -> [UInt8]? {
        do {
            let inflater = try Inflater(codings, limit: longestBody)
            var bytes: [UInt8] = []
            for block in blocks {
                try inflater.add([block])
                while let block = try inflater.next() {
                    bytes += block.readableBytesView
                    guard bytes.count <= longestBody else { return nil }
                }
            }
            try inflater.finish()
            return bytes
        } catch {
            return nil
        }
    }
}
