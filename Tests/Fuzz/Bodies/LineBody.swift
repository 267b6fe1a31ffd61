import JobModel
import JobProtocol

/// The line codec: bytes in any splitting.
///
/// The first byte of an input says how long a line may be, the next eight how the stream is split; the rest is the
/// stream.
package enum LineBody {
    private static let header = 9

    package static func check(_ input: [UInt8]) throws(Finding) {
        guard input.count > header else { return }
        let limit = Int(input[0]) * 8
        let stream = input[header...]
        let whole = try frames([stream], limit: limit)
        try Finding.unless(
            try frames(stream.indices.map { stream[$0...$0] }, limit: limit) == whole,
            "Byte by byte the stream has other lines than at once.")
        try Finding.unless(
            try frames(split(stream, by: input[1..<header]), limit: limit) == whole,
            "In pieces the stream has other lines than at once.")
        for case .line(let line) in whole { try check(line: line) }
    }

    /// The lines of a stream that comes in `pieces`, within the framer's bounds.
    private static func frames(
        _ pieces: [ArraySlice<UInt8>], limit: Int
    ) throws(Finding) -> [LineFramer.Frame] {
        var framer = LineFramer(limit: limit)
        var frames: [LineFramer.Frame] = []
        for piece in pieces {
            piece.withUnsafeBytes { framer.feed($0, into: &frames) }
            try Finding.unless(framer.partialSize <= limit + 1, "\(framer.partialSize) bytes of a line are kept.")
        }
        for case .line(let line) in frames {
            try Finding.unless(!line.isEmpty && line.count <= limit, "A line has \(line.count) bytes.")
            try Finding.unless(!line.contains(UInt8(ascii: "\n")), "A line has a line end in it.")
        }
        return frames
    }

    private static func split(_ stream: ArraySlice<UInt8>, by lengths: ArraySlice<UInt8>) -> [ArraySlice<UInt8>] {
        var pieces: [ArraySlice<UInt8>] = []
        var rest = stream
        while !rest.isEmpty {
            for length in lengths where !rest.isEmpty {
                let piece = rest.prefix(max(1, Int(length)))
                pieces.append(piece)
                rest = rest.dropFirst(piece.count)
            }
        }
        return pieces
    }

    /// Writing and reading a line preserves its contents, and its values stay within their budget.
    private static func check(line: [UInt8]) throws(Finding) {
        let budget = 1 << 16
        let incoming = IncomingLine(line, budget: budget)
        try Finding.unless((0...budget).contains(incoming.cost), "The values of a line take \(incoming.cost) bytes.")
        for call in incoming.calls where call.rejection == nil {
            let again = IncomingLine(call.request.line, budget: .max).calls
            try Finding.unless(again == [call], "The request is another once it is written: \(call), \(again)")
        }
    }
}
