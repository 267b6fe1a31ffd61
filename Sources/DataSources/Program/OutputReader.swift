import Glibc
package import JobModel
package import SystemPackage

/// Reads a program's output from its log, even while the program writes it. Calls block.
package struct OutputReader {
    private let file: Int32
    private let files: FileOperations

    /// Reads from an open file.
    package init(_ file: Int32, _ files: FileOperations) { (self.file, self.files) = (file, files) }

    /// The blocks of a log at one moment.
    private struct Contents {
        let head: OutputLog.Head
        /// The end of the beginning, the begin of the end, and the end of what is kept.
        var firstEnd: Int64 = 0
        var lastBegin: Int64 = 0
        var end: Int64 = 0

        var hasGap: Bool { lastBegin > firstEnd }
    }

    /// How often a piece is read again because the program has overwritten it.
    private static let attempts = 16
    private static let mostRecords = 4096

    /// Reads at most `length` bytes from `offset` on, up to where output was dropped; a negative offset counts from the end.
    /// The piece ends with a whole character, unless the output itself `isOver` within one.
    package func piece(at offset: Int64, length: Int, isOver: Bool) throws(Errno) -> OutputPiece {
        for _ in 0..<Self.attempts {
            if let piece = try tryPiece(at: offset, length: length, isOver: isOver) { return piece }
        }
        throw Errno.resourceTemporarilyUnavailable
    }

    /// Nil if the program has overwritten the piece meanwhile.
    private func tryPiece(at offset: Int64, length: Int, isOver: Bool) throws(Errno) -> OutputPiece? {
        var piece = OutputPiece(at: offset)
        guard let contents = try contents() else { return piece }
        let dropped = Int64(contents.head.dropped)
        piece.size = contents.end.saturatingAdding(dropped)
        piece.omitted = (contents.lastBegin - contents.firstEnd).saturatingAdding(dropped)
        let isFromEnd = offset < 0
        let offset = isFromEnd ? max(0, piece.size + offset) : offset
        piece.next = offset
        var position = offset
        if position >= contents.firstEnd, position < contents.lastBegin { position = contents.lastBegin }
        guard position < contents.end else {
            piece.next = isOver || dropped > 0 ? max(offset, piece.size) : offset
            return piece
        }
        let isInBeginning = contents.hasGap && position < contents.firstEnd
        let bound = isInBeginning ? contents.firstEnd : contents.end
        let most = position.saturatingAdding(Int64(max(1, length)))
        guard let (records, end) = try records(contents.head, position..<min(bound, most)) else { return nil }
        (piece.records, piece.next) = (records, end)
        if isFromEnd || contents.hasGap && position == contents.lastBegin { piece.removeEndOfCharacter() }
        if end < bound || isInBeginning || !isOver && dropped == 0 {
            piece.next -= Int64(piece.removeBeginOfCharacter())
        }
        if end == bound, isInBeginning { piece.next = contents.lastBegin }
        return piece
    }

    /// Nil before the first byte.
    private func contents() throws(Errno) -> Contents? {
        // The first block is written before the head.
        guard let head = try load(OutputLog.Head.self, at: 0), head.blockSize > 0 else { return nil }
        guard head.isValid else { throw Errno.ioError }
        var contents = Contents(head: head)
        guard head.blocks > 0 else { return contents }
        let last = try block(head.blocks - 1, head)
        contents.end = last.end
        let ring = try ring(head)
        guard !ring.isEmpty else {
            (contents.firstEnd, contents.lastBegin) = (last.end, last.end)
            return contents
        }
        contents.firstEnd = head.firstSlots > 0 ? try block(UInt64(head.firstSlots) - 1, head).end : 0
        let isWhole = ring.lowerBound == UInt64(head.firstSlots) && last.end <= Int64(clamping: head.limit)
        contents.lastBegin =
            isWhole ? contents.firstEnd : max(try block(ring.lowerBound, head).begin, last.end - head.end)
        contents.lastBegin = max(contents.lastBegin, contents.firstEnd)
        return contents
    }

    /// The blocks of the ring without the one that is being replaced.
    private func ring(_ head: OutputLog.Head) throws(Errno) -> Range<UInt64> {
        let ring = head.ring
        guard let last = ring.last, ring.count > 1 else { return ring }
        let isReplaced = try block(ring.lowerBound, head).begin >= block(last, head).end
        return isReplaced ? ring.dropFirst() : ring
    }

    private func block(_ block: UInt64, _ head: OutputLog.Head) throws(Errno) -> (begin: Int64, end: Int64, marks: Int)
    {
        guard let found = try load(OutputLog.BlockHead.self, at: head.position(of: head.slot(of: block))),
            found.offset < 1 << 62, found.size <= head.blockSize, found.marks <= UInt32(head.marks)
        else { throw Errno.ioError }
        return (Int64(found.offset), Int64(found.offset) + Int64(found.size), Int(found.marks))
    }

    /// The bytes of a range in which nothing was dropped, or of its beginning if the streams alternate very often, and where
    /// they end; nil if they are overwritten.
    private func records(
        _ head: OutputLog.Head, _ range: Range<Int64>
    ) throws(Errno) -> (records: [OutputPiece.Record], end: Int64)? {
        var records: [OutputPiece.Record] = []
        var position = range.lowerBound
        var index = try find(position, head)
        while position < range.upperBound {
            guard index < head.blocks else { return nil }
            let found = try block(index, head)
            guard (found.begin..<found.end).contains(position) else { return nil }
            let part = position..<min(found.end, range.upperBound)
            let slot = head.slot(of: index)
            let bytes = try load(
                head.dataPosition(of: slot) + (part.lowerBound - found.begin), Int(part.upperBound - part.lowerBound))
            let marks = try loadMarks(at: head.position(of: slot), found.marks)
            guard bytes.count == part.count else { throw Errno.ioError }
            // The block may have been replaced while it was read.
            guard try block(index, head).begin == found.begin else { return nil }
            for (number, mark) in marks.enumerated() {
                let begin = found.begin + Int64(mark >> 1)
                let end = number + 1 < marks.count ? found.begin + Int64(marks[number + 1] >> 1) : found.end
                let run = max(begin, part.lowerBound)..<max(max(begin, part.lowerBound), min(end, part.upperBound))
                guard !run.isEmpty else { continue }
                let text = bytes[Int(run.lowerBound - part.lowerBound)..<Int(run.upperBound - part.lowerBound)]
                let isError = Int(mark & 1) == OutputLog.Stream.err.rawValue
                if records.last?.isError == isError {
                    records[records.count - 1].bytes += text
                } else if records.count == Self.mostRecords {
                    return (records, run.lowerBound)
                } else {
                    records.append(OutputPiece.Record(isError: isError, bytes: Array(text)))
                }
            }
            position = part.upperBound
            index += 1
        }
        return (records, range.upperBound)
    }

    /// The last kept block that begins at or before `position`.
    private func find(_ position: Int64, _ head: OutputLog.Head) throws(Errno) -> UInt64 {
        let ring = try ring(head)
        var blocks = 0..<min(head.blocks, UInt64(head.firstSlots))
        if !ring.isEmpty {
            let begin = try block(ring.lowerBound, head).begin
            if blocks.isEmpty || position >= begin { blocks = ring }
        }
        while blocks.count > 1 {
            let middle = (blocks.lowerBound + blocks.upperBound) / 2
            blocks =
                try block(middle, head).begin <= position
                ? middle..<blocks.upperBound : blocks.lowerBound..<middle
        }
        return blocks.lowerBound
    }

    // MARK: - File

    /// A value in the file; nil if the file ends before it.
    private func load<Value: BitwiseCopyable>(_ type: Value.Type, at position: Int64) throws(Errno) -> Value? {
        let bytes = try load(position, MemoryLayout<Value>.size)
        guard bytes.count == MemoryLayout<Value>.size else { return nil }
        return bytes.withUnsafeBytes { $0.loadUnaligned(as: type) }
    }

    private func loadMarks(at block: Int64, _ count: Int) throws(Errno) -> [UInt32] {
        let position = block + Int64(MemoryLayout<OutputLog.BlockHead>.size)
        let bytes = try load(position, count * MemoryLayout<UInt32>.size)
        return bytes.withUnsafeBytes { bytes in
            (0..<bytes.count / MemoryLayout<UInt32>.size).map {
                bytes.loadUnaligned(fromByteOffset: $0 * MemoryLayout<UInt32>.size, as: UInt32.self)
            }
        }
    }

    private func load(_ position: Int64, _ count: Int) throws(Errno) -> [UInt8] {
        var failure: Errno?
        let bytes = [UInt8](unsafeUninitializedCapacity: count) { buffer, filled in
            do throws(Errno) {
                filled = try files.fill(
                    UnsafeMutableRawBufferPointer(rebasing: UnsafeMutableRawBufferPointer(buffer)[..<count]),
                    from: file,
                    at: position)
            } catch {
                failure = error
            }
        }
        if let failure { throw failure }
        return bytes
    }
}

extension OutputPiece {
    /// Removes the rest of a character whose begin is not in the piece.
    fileprivate mutating func removeEndOfCharacter() {
        guard let first = records.first else { return }
        records[0].bytes.removeFirst(first.bytes.prefix(3).prefix { $0 & 0xC0 == 0x80 }.count)
    }

    /// Removes the begin of a character that is not complete; returns its size.
    fileprivate mutating func removeBeginOfCharacter() -> Int {
        guard let last = records.last else { return 0 }
        let count = last.bytes.incompleteCharacter
        guard count > 0 else { return 0 }
        if count < last.bytes.count {
            records[records.count - 1].bytes.removeLast(count)
        } else {
            records.removeLast()
        }
        return count
    }
}

extension [UInt8] {
    /// The number of bytes at the end that begin a UTF-8 character without completing it.
    fileprivate var incompleteCharacter: Int {
        for (distance, byte) in suffix(3).reversed().enumerated() where byte & 0xC0 != 0x80 {
            let length =
                switch byte {
                case 0xC2...0xDF: 2
                case 0xE0...0xEF: 3
                case 0xF0...0xF4: 4
                default: 1
                }
            return length > distance + 1 ? distance + 1 : 0
        }
        return 0
    }
}
