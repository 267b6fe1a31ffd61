/// The lines of a file or of standard input, read piece by piece.
struct InputLines: AsyncSequence {
    /// The longest line, and the largest document of many lines, that is read.
    static let limit = 64 << 20

    /// A line with its number, from 1; empty lines are left out.
    struct Line: Sendable, Equatable {
        let number: Int
        let bytes: [UInt8]
    }

    private let path: String
    /// The text itself, where it is in no file.
    private let text: String?

    /// The lines of the file at `path`; `-` is standard input.
    init(path: String) {
        self.path = path
        text = nil
    }

    /// The lines of `text`, which is called `name` in messages.
    init(text: String, name: String) {
        path = name
        self.text = text
    }

    struct AsyncIterator: AsyncIteratorProtocol, Sendable {
        fileprivate let path: String
        fileprivate var input: InputFile?
        fileprivate var ready: ArraySlice<Line> = []
        fileprivate var rest: [UInt8] = []
        fileprivate var number = 0
        fileprivate var isAtEnd = false

        mutating func next() async throws(CommandFailure) -> Line? {
            while true {
                if let line = ready.popFirst() { return line }
                if isAtEnd { return nil }
                try await read()
            }
        }

        private mutating func read() async throws(CommandFailure) {
            let file: InputFile
            if let input {
                file = input
            } else {
                file = try InputFile(path: path)
                input = file
            }
            let piece = try await file.read()
            isAtEnd = piece.isEmpty
            var lines: [Line] = []
            var begin = piece.startIndex
            while let end = piece[begin...].firstIndex(of: UInt8(ascii: "\n")) {
                rest += piece[begin..<end]
                finishLine(into: &lines)
                begin = end + 1
            }
            rest += piece[begin...]
            if isAtEnd, !rest.isEmpty { finishLine(into: &lines) }
            guard rest.count <= InputLines.limit else {
                throw CommandFailure(
                    .badData, "Line \(number + 1) of \(path) is longer than \(InputLines.limit) bytes; split it.")
            }
            ready = lines[...]
        }

        private mutating func finishLine(into lines: inout [Line]) {
            number += 1
            if rest.contains(where: { ![0x20, 0x09, 0x0D].contains($0) }) {
                lines.append(Line(number: number, bytes: rest))
            }
            rest = []
        }

        fileprivate mutating func append(_ line: [UInt8]) {
            rest = line
            var lines: [Line] = []
            finishLine(into: &lines)
            ready += lines
        }
    }

    func makeAsyncIterator() -> AsyncIterator {
        var iterator = AsyncIterator(path: path)
        if let text {
            for line in text.utf8.split(separator: UInt8(ascii: "\n"), omittingEmptySubsequences: false) {
                iterator.append(Array(line))
            }
            iterator.isAtEnd = true
        }
        return iterator
    }
}
