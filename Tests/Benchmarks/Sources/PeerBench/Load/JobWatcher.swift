import Glibc

/// Submits jobs whose outcomes it is told, as a client would that wants all results.
final class JobWatcher {
    struct Outcome {
        let seconds: Double
        /// CPU seconds of the watcher itself.
        let cpu: Double
        /// Bytes that came.
        let bytes: Int
    }

    private let socket: LocalSocket
    private var pending: [UInt8] = []
    private let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: 1 << 20, alignment: 64)
    private static let succeeded = Array(#""state":"succeeded","snapshot""#.utf8)
    private static let failed = Array(#""state":"failed","snapshot""#.utf8)
    private static let answer = Array(#"{"jsonrpc":"2.0","id":"#.utf8)

    /// Watches all jobs, or those with a tag.
    init(_ daemon: Deferd, tag: String? = nil) throws {
        socket = try daemon.connect()
        let selection = tag.map { #""tag":"\#($0)""# } ?? #""all":true"#
        let answer = try socket.ask(
            #"{"jsonrpc":"2.0","id":0,"method":"job.watch","params":{\#(selection)}}"# + "\n")
        guard answer.contains(#""result""#) else { throw BenchError("The daemon refused: \(answer)") }
    }

    deinit { buffer.deallocate() }

    /// Submits all jobs with a limit on unanswered ones, and returns when every job has succeeded.
    func run(specs: [String], depth: Int) throws -> Outcome {
        let requests = specs.enumerated().map { Array(Deferd.request(String($0), spec: $1).utf8) }
        let (wall, cpu) = (Stopwatch(), Stopwatch.thread)
        var (sent, answered, done, bytes) = (0, 0, 0, 0)
        while done < specs.count {
            let next = min(specs.count, answered + depth)
            if sent < next, next - sent >= depth / 2 || answered == sent || next == specs.count {
                try Array(requests[sent..<next].joined()).withUnsafeBytes { try socket.send($0) }
                sent = next
            }
            let count = try socket.receive(into: buffer)
            bytes += count
            try receive(UnsafeRawBufferPointer(rebasing: buffer[..<count])) { line in
                if Self.begins(line, Self.answer) {
                    answered += 1
                    guard !Self.contains(line, #""error":"#) else { throw Self.refused(line) }
                } else if Self.contains(line, Self.succeeded) {
                    done += 1
                } else if Self.contains(line, Self.failed) {
                    throw Self.refused(line)
                }
            }
        }
        return Outcome(seconds: wall.seconds, cpu: cpu.seconds, bytes: bytes)
    }

    /// Returns the complete lines; the rest waits for the next read.
    private func receive(_ bytes: UnsafeRawBufferPointer, _ body: (UnsafeRawBufferPointer) throws -> Void) throws {
        var rest = bytes
        while let base = rest.baseAddress, let end = memchr(base, 10, rest.count) {
            let length = base.distance(to: end)
            let line = UnsafeRawBufferPointer(rebasing: rest[..<length])
            if pending.isEmpty {
                try body(line)
            } else {
                pending.append(contentsOf: line)
                try pending.withUnsafeBytes { try body($0) }
                pending.removeAll(keepingCapacity: true)
            }
            rest = UnsafeRawBufferPointer(rebasing: rest[(length + 1)...])
        }
        pending.append(contentsOf: rest)
    }

    private static func begins(_ line: UnsafeRawBufferPointer, _ head: [UInt8]) -> Bool {
        line.starts(with: head)
    }

    /// Checks only the head of a line, which contains the needed members.
    private static func contains(_ line: UnsafeRawBufferPointer, _ needle: [UInt8]) -> Bool {
        UnsafeRawBufferPointer(rebasing: line.prefix(160)).contains(sequence: needle)
    }

    private static func contains(_ line: UnsafeRawBufferPointer, _ needle: String) -> Bool {
        contains(line, Array(needle.utf8))
    }

    private static func refused(_ line: UnsafeRawBufferPointer) -> BenchError {
        BenchError("The daemon said: \(String(decoding: line.prefix(600), as: UTF8.self))")
    }
}
