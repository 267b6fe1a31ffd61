import Glibc
import JobModel
import NIOCore
import NIOPosix
import Synchronization
import SystemPackage
import TestSupport
import Testing

@testable import DataSources

/// The log of a program's output against a plain model of its bytes.
@Suite struct OutputLogTests {
    /// What a program writes at a time: capital letters to standard output, small ones to standard error.
    struct Run {
        let bytes: [UInt8]
        let isError: Bool

        init(_ bytes: [UInt8], isError: Bool = false) { (self.bytes, self.isError) = (bytes, isError) }

        /// One of 26 letters.
        init(_ letter: Int, count: Int, isError: Bool) {
            self.init(
                [UInt8](repeating: UInt8(ascii: isError ? "a" : "A") + UInt8(letter % 26), count: count),
                isError: isError)
        }
    }

    /// A writer, and what reads the file that it makes.
    struct Log {
        let writer: OutputWriter

        init(_ bench: Workbench, limit: Int) {
            let transfer = Transfer(
                bench.context(1), bench.library.rules, bench.library.shared,
                loop: MultiThreadedEventLoopGroup.singleton.next()
            ) { _ in }
            writer = OutputWriter(limit: limit, transfer)
        }

        func write(_ run: Run) {
            writer.append([PipeReader.Chunk(pipe: run.isError ? 1 : 0, bytes: ByteBuffer(bytes: run.bytes))])
        }
    }

    /// All that a reader gets, piece by piece.
    struct Reading: Equatable {
        var bytes: [UInt8] = []
        var size: Int64 = 0
        var omitted: Int64 = 0
        var pieces = 0

        init(_ reader: OutputReader<Errno>?, length: Int = 256 << 10, isOver: Bool = true) throws {
            var offset: Int64 = 0
            while let piece = try reader?.piece(at: offset, length: length, isOver: isOver) {
                (size, omitted) = (piece.size, piece.omitted)
                for record in piece.records {
                    // All of them, where these are few.
                    let looked = record.bytes.prefix(1000) + record.bytes.suffix(1)
                    #expect(!record.bytes.isEmpty)
                    #expect(looked.allSatisfy { $0 >= 0x61 ? record.isError : !record.isError })
                    bytes += record.bytes
                }
                #expect(zip(piece.records, piece.records.dropFirst()).allSatisfy { $0.isError != $1.isError })
                #expect(piece.next >= offset)
                if piece.next <= offset { break }
                pieces += 1
                offset = piece.next
            }
        }

        static func == (left: Reading, right: Reading) -> Bool {
            left.bytes == right.bytes && left.size == right.size && left.omitted == right.omitted
        }
    }

    /// Runs of letters on random streams, `size` bytes together.
    private static func runs(_ size: Int, least: Int, most: Int, seed: UInt64) -> [Run] {
        var random = SeededGenerator(seed: seed)
        var runs: [Run] = []
        var rest = size
        while rest > 0 {
            let count = min(rest, Int.random(in: least...most, using: &random))
            runs.append(
                Run(Int.random(in: 0..<26, using: &random), count: count, isError: Bool.random(using: &random)))
            rest -= count
        }
        return runs
    }

    /// The bytes that readers should get: all, or the halves at both ends.
    private static func kept(_ bytes: [UInt8], limit: Int) -> [UInt8] {
        bytes.count <= limit ? bytes : Array(bytes.prefix((limit + 1) / 2) + bytes.suffix(limit / 2))
    }

    // MARK: - What is kept

    @Test(arguments: [2, 3, 1000, 1001, (64 << 10) - 1, 64 << 10, (64 << 10) + 1, (128 << 10) + 1, 1 << 20])
    func bothEnds_areKept_exactly(limit: Int) async throws {
        try await Workbench.run { bench async throws in
            let sizes = [1, limit / 2, limit - 1, limit, limit + 1, limit * 3 / 2 + 1, limit * 3 + 7]
            for (index, size) in sizes.enumerated() where size > 0 {
                let (least, most) = limit < 100 ? (1, 3) : (100, max(400, limit / 50))
                let runs = Self.runs(size, least: least, most: most, seed: UInt64(limit + index))
                let log = Log(bench, limit: limit)
                for run in runs { log.write(run) }
                let reading = try Reading(log.writer.reader)
                let bytes = runs.flatMap(\.bytes)
                #expect(reading.bytes == Self.kept(bytes, limit: limit), "\(size) bytes")
                #expect(reading.size == size && reading.omitted == max(0, size - limit))
                #expect(log.writer.size == size)
                #expect(log.writer.tail.utf8.elementsEqual(bytes.suffix(4096)))
            }
        }
    }

    @Test func pieces_endWithWholeCharacters() async throws {
        try await Workbench.run { bench async throws in
            let text = String(repeating: "a\u{e9}\u{20ac}\u{1f600}", count: 400)
            let log = Log(bench, limit: 1003)
            log.write(Run(Array(text.utf8)))
            for length in 4...9 {
                var offset: Int64 = 0
                while let piece = try log.writer.reader?.piece(at: offset, length: length, isOver: true),
                    piece.next > offset
                {
                    for record in piece.records { #expect(String(validating: record.bytes, as: UTF8.self) != nil) }
                    offset = piece.next
                }
                #expect(offset == text.utf8.count)
            }
            // A character that is not complete yet.
            let live = Log(bench, limit: 1000)
            live.write(Run([0x61, 0xe2, 0x82]))
            let begin = try #require(try live.writer.reader?.piece(at: 0, length: 100, isOver: false))
            #expect(begin.records.map(\.bytes) == [[0x61]] && begin.next == 1 && begin.size == 3)
            let rest = try #require(try live.writer.reader?.piece(at: 1, length: 100, isOver: true))
            #expect(rest.records.map(\.bytes) == [[0xe2, 0x82]] && rest.next == 3)
            live.write(Run([0xac]))
            let end = try #require(try live.writer.reader?.piece(at: 1, length: 100, isOver: false))
            #expect(end.records.map(\.bytes) == [[0xe2, 0x82, 0xac]] && end.next == 4)
        }
    }

    // MARK: - At the same time

    /// A reader comes after each write into the file, as if it ran beside the program.
    @Test(arguments: [2, 7, 1000, 100_000])
    func reading_isRight_betweenAllWrites(limit: Int) async throws {
        let runs = Self.runs(limit * 7, least: limit < 100 ? 1 : 100, most: max(3, limit / 2), seed: 3)
        let bytes = runs.flatMap(\.bytes)
        let readings = Mutex(0)
        var files = FileOperations.real
        files.writeAt = { file, offset, part throws(Errno) in
            try FileOperations.real.writeAt(file, offset, part)
            let reader = OutputReader(file, .real)
            for position in [0, limit / 3, limit / 2, limit, limit * 3, limit * 6] {
                let piece = try reader.piece(at: Int64(position), length: 1 << 20, isOver: false)
                let found = piece.records.flatMap(\.bytes)
                guard !found.isEmpty else { continue }
                let isInBeginning = position < (limit + 1) / 2
                let start = isInBeginning ? position : Int(piece.next) - found.count
                #expect(found.elementsEqual(bytes[start..<start + found.count]), "\(position) of \(piece.size)")
                readings.withLock { $0 += 1 }
            }
        }
        try await Workbench.run(files: files) { bench async throws in
            let log = Log(bench, limit: limit)
            for run in runs { log.write(run) }
            #expect(try Reading(log.writer.reader).bytes == Self.kept(bytes, limit: limit))
        }
        #expect(readings.withLock(\.self) > 10)
    }

    /// The program writes as much as is read, so that a piece next to the gap is always overwritten.
    @Test func reading_goesOn_behindTheGap_whereTheProgramIsFast() async throws {
        let written = Mutex<Int32?>(nil)
        var files = FileOperations.real
        files.writeAt = { file, offset, part throws(Errno) in
            written.withLock { $0 = file }
            try FileOperations.real.writeAt(file, offset, part)
        }
        try await Workbench.run(files: files) { bench async throws in
            let log = Log(bench, limit: 1 << 20)
            func write(_ count: Int) {
                let size = Int(log.writer.size)
                log.write(Run((size..<size + count).map { UInt8(0x41 + $0 / 1000 % 26) }))
            }
            write(5 << 18)
            let file = written.withLock { $0 } ?? -1
            let reader = OutputReader<Errno>(damage: .ioError) { (count, offset) throws(Errno) in
                let bytes = try FileOperations.real.read(count, from: file, at: offset)
                if offset > 0 { write(count) }
                return bytes
            }
            let piece = try reader.piece(at: 3 << 18, length: 64 << 10, isOver: false)
            let found = piece.records.flatMap(\.bytes)
            #expect(found.count == 64 << 10 && piece.next <= piece.size)
            let start = Int(piece.next) - found.count
            #expect(found.enumerated().allSatisfy { Int($1) == 0x41 + (start + $0) / 1000 % 26 })
        }
    }

    // MARK: - Without room

    /// The bytes of a unit in the file.
    private static let unit = OutputLog.Head(limit: 1 << 20).unitSpace

    @Test func output_withoutRoomInTheQuota_isDroppedAtItsEnd() async throws {
        try await Workbench.run { bench async throws in
            let runs = Self.runs(600_000, least: 1000, most: 20_000, seed: 7)
            let bytes = runs.flatMap(\.bytes)
            for units in [0, 1, 3, 16] {
                bench.roomForBody.withLock { $0 = Int64(units) * Self.unit + 17 }
                do {
                    let log = Log(bench, limit: 1 << 20)
                    for run in runs { log.write(run) }
                    let reading = try Reading(log.writer.reader)
                    let count = units * (32 << 10)
                    #expect(reading.bytes.elementsEqual(bytes.prefix(count)), "\(units) units")
                    #expect(reading.size == bytes.count && reading.omitted == Int64(bytes.count - count))
                    #expect(log.writer.space == Int64(units) * Self.unit)
                    #expect(bench.bytes(of: bench.logPath(of: 1))?.count ?? 0 <= units * Int(Self.unit) + 100)
                }
            }
            // With the log its share of the quota is free again.
            bench.roomForBody.withLock { $0 = 20 * Self.unit }
            let log = Log(bench, limit: 1 << 20)
            for run in runs { log.write(run) }
            #expect(try Reading(log.writer.reader).bytes == bytes)
        }
    }

    @Test func output_withoutRoomOnTheDisk_isDropped() async throws {
        let free = Mutex(Int64(100) + 2 * Self.unit)
        var files = FileOperations.real
        files.disk = { _ in
            free.withLock { left in
                defer { left -= Self.unit }
                return (1, .max, left)
            }
        }
        try await Workbench.run(files: files, { $0.downloads.minimumFree = 100 }) { bench async throws in
            let runs = Self.runs(300_000, least: 1000, most: 20_000, seed: 9)
            let log = Log(bench, limit: 1 << 20)
            for run in runs { log.write(run) }
            let reading = try Reading(log.writer.reader)
            #expect(reading.bytes.elementsEqual(runs.flatMap(\.bytes).prefix(64 << 10)))
            #expect(reading.size == 300_000 && reading.omitted == 300_000 - Int64(64 << 10))
        }
    }

    @Test(arguments: [true, false])
    func output_thatCannotBeWritten_isDropped(isLasting: Bool) async throws {
        let limit = 1000
        let runs = Self.runs(4000, least: 100, most: 300, seed: 11)
        let bytes = runs.flatMap(\.bytes)
        for number in 0..<60 {
            let count = Mutex(0)
            var files = FileOperations.real
            files.writeAt = { file, offset, bytes throws(Errno) in
                let present = count.withLock { count in
                    defer { count += 1 }
                    return count
                }
                if isLasting ? present >= number : present == number { throw Errno.noSpace }
                try FileOperations.real.writeAt(file, offset, bytes)
            }
            try await Workbench.run(files: files) { bench async throws in
                let log = Log(bench, limit: limit)
                for run in runs { log.write(run) }
                #expect(log.writer.size == bytes.count)
                let reading = try Reading(log.writer.reader)
                let first = min(reading.bytes.count, limit / 2)
                #expect(reading.bytes.prefix(first).elementsEqual(bytes.prefix(first)), "\(number)")
                // On a disk that works again the count of what was dropped is there.
                if !isLasting {
                    #expect(reading.size == bytes.count, "\(number)")
                    #expect(reading.omitted == Int64(bytes.count - reading.bytes.count), "\(number)")
                }
            }
        }
    }

    // MARK: - Damaged files

    @Test func damagedFile_givesAnError_orSomeOutput() async throws {
        try await Workbench.run { bench async throws in
            var random = SeededGenerator(seed: 13)
            for limit in [10, 1000] {
                let log = Log(bench, limit: limit)
                for run in Self.runs(limit * 4, least: 50, most: 120, seed: 12) { log.write(run) }
                let path = bench.logPath(of: 1)
                let whole = try #require(bench.bytes(of: path))
                var errors = 0
                for round in 0..<1500 {
                    var bytes = whole
                    // Mostly numbers in the heads.
                    for _ in 0..<Int.random(in: 1...3, using: &random) {
                        let bound = round % 2 == 0 ? MemoryLayout<OutputLog.Head>.size : bytes.count
                        let value: UInt8 = [0, 1, 0x7f, 0x80, 0xff].randomElement(using: &random) ?? 0
                        let start = Int.random(in: 0..<bound, using: &random)
                        for index in start..<min(bound, start + [1, 4, 8][round % 3]) { bytes[index] = value }
                    }
                    if round % 5 == 0 { bytes.removeLast(Int.random(in: 0...bytes.count, using: &random)) }
                    try bench.write(bytes, to: path)
                    let file = open(path, O_RDONLY | O_CLOEXEC)
                    defer { close(file) }
                    let reader = OutputReader(file, .real)
                    for offset in [0, Int64(limit) / 2, Int64(limit), 1 << 62, Int64.max] {
                        guard let piece = try? reader.piece(at: offset, length: 1 << 20, isOver: round % 2 == 0) else {
                            errors += 1
                            continue
                        }
                        let size = piece.records.reduce(0) { $0 + $1.bytes.count }
                        #expect(piece.next >= offset && size <= whole.count && piece.omitted >= 0)
                    }
                }
                #expect(errors > 100)
            }
        }
    }
}
