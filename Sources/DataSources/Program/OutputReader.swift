package import JobModel
import SystemPackage

/// Reads a program's output from its log, even while the program writes it. Calls block.
package struct OutputReader<Failure: Error> {
    private let damage: Failure
    private let load: (_ count: Int, _ offset: Int64) throws(Failure) -> [UInt8]

    /// `load` reads bytes of the log, fewer at its end; `damage` tells that the log is not complete, or is always overwritten.
    package init(damage: Failure, load: @escaping (_ count: Int, _ offset: Int64) throws(Failure) -> [UInt8]) {
        (self.damage, self.load) = (damage, load)
    }

    /// How often a piece is read again because the program has overwritten it.
    private static var attempts: Int { 16 }
    /// How far behind the gap the second attempt begins, in bytes; each further attempt begins twice as far.
    private static var leastLead: Int64 { 32 << 10 }
    private static var mostRecords: Int { 4096 }

    /// Reads at most `length` bytes from `offset` on, up to where output was dropped; a negative offset counts from the end.
    /// The piece ends with a whole character, unless the output itself `isOver` within one.
    package func piece(at offset: Int64, length: Int, isOver: Bool) throws(Failure) -> OutputPiece {
        for attempt in 0..<Self.attempts {
            let lead = attempt == 0 ? 0 : Self.leastLead << Int64(attempt - 1)
            if let piece = try tryPiece(at: offset, length: length, lead: lead, isOver: isOver) { return piece }
        }
        throw damage
    }

    /// Nil if the program has overwritten the piece meanwhile. The bytes behind the gap are the next that it overwrites, so
    /// a piece that would begin with them begins `lead` bytes later.
    private func tryPiece(at offset: Int64, length: Int, lead: Int64, isOver: Bool) throws(Failure) -> OutputPiece? {
        var piece = OutputPiece(at: offset)
        guard let head = try head() else { return piece }
        let (gap, size, dropped) = (head.gap, Int64(head.size), Int64(head.dropped))
        piece.size = size.saturatingAdding(dropped)
        piece.omitted = Int64(gap.count).saturatingAdding(dropped)
        let isFromEnd = offset < 0
        let offset = isFromEnd ? max(0, piece.size + offset) : offset
        piece.next = offset
        let position = gap.contains(offset) ? gap.upperBound + min(lead, (size - gap.upperBound) / 2) : offset
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
        if isFromEnd || position > offset || !gap.isEmpty && position == gap.upperBound { piece.removeEndOfCharacter() }
        if end < bound || isInBeginning || !isOver && dropped == 0 {
            piece.next -= Int64(piece.removeBeginOfCharacter())
        }
        if end == bound, isInBeginning { piece.next = gap.upperBound }
        return piece
    }

    /// Nil before the first byte.
    private func head() throws(Failure) -> OutputLog.Head? {
        let bytes = try load(MemoryLayout<OutputLog.Head>.size, 0)
        guard bytes.count == MemoryLayout<OutputLog.Head>.size else { return nil }
        let head = bytes.withUnsafeBytes { $0.loadUnaligned(as: OutputLog.Head.self) }
        // The first bytes are written before the head.
        guard head.limit > 0 else { return nil }
        guard head.isValid else { throw damage }
        return head
    }

    /// The bytes of a range in which nothing is missing, or of its beginning if the streams alternate very often, and where
    /// they end.
    private func records(
        _ head: OutputLog.Head, _ range: Range<Int64>
    ) throws(Failure) -> (records: [OutputPiece.Record], end: Int64) {
        var records: [OutputPiece.Record] = []
        var offset = range.lowerBound
        while offset < range.upperBound {
            let (place, room) = head.place(of: offset)
            let (first, count) = (Int(place % 8), min(room, Int(range.upperBound - offset)))
            let size = first + count + (first + count + 7) / 8
            let groups = try load(size, OutputLog.Head.position(ofGroupAt: place))
            guard groups.count == size else { throw damage }
            for index in first..<first + count {
                let bits = index / 8 * 9
                let isError = groups[bits] >> UInt8(index % 8) & 1 == 1
                if records.last?.isError != isError {
                    guard records.count < Self.mostRecords else { return (records, offset) }
                    records.append(OutputPiece.Record(isError: isError, bytes: []))
                }
                records[records.count - 1].bytes.append(groups[bits + 1 + index % 8])
                offset += 1
            }
        }
        return (records, range.upperBound)
    }
}

extension OutputReader<Errno> {
    init(_ file: Int32, _ files: FileOperations) {
        self.init(damage: .ioError) { (count, offset) throws(Errno) in try files.read(count, from: file, at: offset) }
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
