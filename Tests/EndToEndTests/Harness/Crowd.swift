import Foundation
import Glibc
import Synchronization
import Testing

/// Many bare connections at once, without a thread for each.
final class Crowd {
    private(set) var members: [FileDescriptor] = []

    /// Lets this process open `count` more descriptors than it may otherwise need. Returns the number of connections
    /// that this allows, 200 at least, and notes with the test if there are fewer.
    static func room(for count: Int, sourceLocation: SourceLocation = #_sourceLocation) -> Int {
        var limit = rlimit()
        getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit)
        limit.rlim_cur = limit.rlim_max
        setrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit)
        let room = max(200, min(count, Int(clamping: limit.rlim_max) - 4096))
        if room < count {
            Issue.record(
                """
                Only \(room) connections of \(count) are tried, as the hard limit of descriptors is \(limit.rlim_max) \
                (ulimit -Hn); with \(count + 4096) all are.
                """, severity: .warning, sourceLocation: sourceLocation)
        }
        return room
    }

    /// Connects `count` times.
    func connect(_ count: Int, to daemon: Daemon) throws {
        for _ in 0..<count { members.append(try Wire.descriptor(daemon.socket)) }
    }

    func send(_ text: String) {
        let bytes = Array(text.utf8)
        for member in members { member.write(bytes) }
    }

    /// Closes all.
    func leave() {
        for member in members { member.close() }
        members = []
    }

    deinit { leave() }
}

extension FileDescriptor {
    /// The input up to the first line end or, if the other side closed, up to the end.
    func line() -> String {
        var text: [UInt8] = []
        while text.last != UInt8(ascii: "\n"), let bytes = read() { text += bytes }
        return String(decoding: text, as: UTF8.self)
    }
}

/// A client that sends lines endlessly at full speed and reads the answers, in two threads of its own. It is never more
/// than ``blocksAhead`` blocks ahead of its reading: otherwise, the daemon would close it as a client that does not
/// read, and the machine's scheduling of the two threads would decide that.
final class Flood: Sendable {
    private struct State {
        var isOver = false
        var sent = 0
        var answers: [String: Int] = [:]
    }

    private let descriptor: FileDescriptor
    private let state = Mutex(State())
    private let end = Mailbox<Void>()
    /// One for each block that can be sent before more is read.
    private let room = DispatchSemaphore(value: 0)

    private static let blocksAhead = 4

    var answered: Int { state.withLock { $0.answers.values.reduce(0, +) } }

    /// Sends `block` over and over; the answers that hold one of `kinds` are counted under that, others under the whole
    /// line.
    init(_ daemon: Daemon, _ block: String, answers kinds: [String]) throws {
        descriptor = try Wire.descriptor(daemon.socket)
        let bytes = Array(block.utf8)
        let lines = bytes.count { $0 == UInt8(ascii: "\n") }
        // A connection made with so many must have them again at its end.
        for _ in 0..<Self.blocksAhead { room.signal() }
        Thread.detachNewThread { [self] in
            while true {
                room.wait()
                if state.withLock(\.isOver) { break }
                descriptor.write(bytes)
                state.withLock { $0.sent += lines }
            }
            descriptor.shutDown(SHUT_WR)
        }
        Thread.detachNewThread { [self] in
            var partial: [UInt8] = []
            var read = 0
            while let bytes = descriptor.read() {
                partial += bytes
                let (answers, size) = Self.lines(of: partial, kinds)
                partial.removeFirst(size)
                state.withLock { $0.answers.merge(answers, uniquingKeysWith: +) }
                let before = read
                read += answers.values.reduce(0, +)
                for _ in before / lines..<read / lines { room.signal() }
            }
            descriptor.close()
            end.put(())
        }
    }

    /// The lines of `bytes` by kind, and how long they are. Most are like the one before, which the C library finds
    /// faster than the daemon answers, as Swift in a debug build does not.
    private static func lines(of bytes: [UInt8], _ kinds: [String]) -> (answers: [String: Int], read: Int) {
        var answers: [String: Int] = [:]
        let read = bytes.withUnsafeBytes { bytes -> Int in
            guard let start = bytes.baseAddress else { return 0 }
            var (read, count, last) = (0, 0, 0..<0)
            func tell() {
                let text = String(decoding: bytes[last], as: UTF8.self)
                if count > 0 { answers[kinds.first(where: text.contains) ?? text, default: 0] += count }
            }
            while let end = memchr(start + read, 10, bytes.count - read) {
                let line = read..<(start.distance(to: UnsafeRawPointer(end)))
                if line.count != last.count || memcmp(start + line.lowerBound, start + last.lowerBound, line.count) != 0
                {
                    tell()
                    (last, count) = (line, 0)
                }
                count += 1
                read = line.upperBound + 1
            }
            tell()
            return read
        }
        return (answers, read)
    }

    /// Ends it, and gives how many lines were sent and how often each kind of answer came.
    func stop() async throws -> (sent: Int, answers: [String: Int]) {
        state.withLock { $0.isOver = true }
        room.signal()
        _ = try await end.next("end of the flood")
        return state.withLock { ($0.sent, $0.answers) }
    }
}
