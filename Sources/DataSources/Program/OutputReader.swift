package import JobModel
package import SystemPackage

/// Reads a program's output from its log, even while the program writes it. Calls block.
package struct OutputReader {
    private let file: Int32
    private let files: FileOperations

    package init(_ file: Int32, _ files: FileOperations) { (self.file, self.files) = (file, files) }

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
        guard let head = try head() else { return piece }
        let (gap, size, dropped) = (head.gap, Int64(head.size), Int64(head.dropped))
        piece.size = size.saturatingAdding(dropped)
        piece.omitted = Int64(gap.count).saturatingAdding(dropped)
        let isFromEnd = offset < 0
        let offset = isFromEnd ? max(0, piece.size + offset) : offset
        piece.next = offset
        let position = gap.contains(offset) ? gap.upperBound : offset
        guard position < size else {
            piece.next = isOver || dropped > 0 ? max(offset, piece.size) : offset
            return piece
        }
        let isInBeginning = !gap.isEmpty && position < gap.lowerBound
        let bound = isInBeginning ? gap.lowerBound : size
        let most = position.saturatingAdding(Int64(max(1, length)))
        let end: Int64
        (piece.records, end) = try records(head, position..<min(bound, most))
        if !isInBeginning, let now = try self.head(), position < now.gap.upperBound, position >= now.beginning {
            return nil
        }
        piece.next = end
        if isFromEnd || !gap.isEmpty && position == gap.upperBound { piece.removeEndOfCharacter() }
        if end < bound || isInBeginning || !isOver && dropped == 0 {
            piece.next -= Int64(piece.removeBeginOfCharacter())
        }
        if end == bound, isInBeginning { piece.next = gap.upperBound }
        return piece
    }

    /// Nil before the first byte.
    private func head() throws(Errno) -> OutputLog.Head? {
        let bytes = try load(0, MemoryLayout<OutputLog.Head>.size)
        guard bytes.count == MemoryLayout<OutputLog.Head>.size else { return nil }
        let head = bytes.withUnsafeBytes { $0.loadUnaligned(as: OutputLog.Head.self) }
        // The first bytes are written before the head.
        guard head.limit > 0 else { return nil }
        guard head.isValid else { throw Errno.ioError }
        return head
    }

    /// The bytes of a range in which nothing is missing, or of its beginning if the streams alternate very often, and where
    /// they end.
    private func records(
        _ head: OutputLog.Head, _ range: Range<Int64>
    ) throws(Errno) -> (records: [OutputPiece.Record], end: Int64) {
        var records: [OutputPiece.Record] = []
        var offset = range.lowerBound
        while offset < range.upperBound {
            let (place, room) = head.place(of: offset)
            let (position, count) = (head.position(of: place), min(room, Int(range.upperBound - offset)))
            let first = Int(place % 8)
            let bytes = try load(position.byte, count)
            let bits = try load(position.bits, (first + count + 7) / 8)
            guard bytes.count == count, bits.count == (first + count + 7) / 8 else { throw Errno.ioError }
            func isError(_ index: Int) -> Bool { bits[(first + index) / 8] >> UInt8((first + index) % 8) & 1 == 1 }
            var start = 0
            while start < count {
                let stream = isError(start)
                let end = (start + 1..<count).first { isError($0) != stream } ?? count
                if records.last?.isError == stream {
                    records[records.count - 1].bytes += bytes[start..<end]
                } else if records.count == Self.mostRecords {
                    return (records, offset + Int64(start))
                } else {
                    records.append(OutputPiece.Record(isError: stream, bytes: Array(bytes[start..<end])))
                }
                start = end
            }
            offset += Int64(count)
        }
        return (records, range.upperBound)
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
