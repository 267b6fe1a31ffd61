import Foundation
import Glibc

/// The actions of hostile clients, on threads that run until the process ends.
struct Attack: Sendable {
    private let socket: String
    private let tally = Tally()

    init(socket: String) { self.socket = socket }

    /// The results so far.
    var told: String { tally.description }

    /// Returns once it is under way.
    func start(_ kind: HostileClients.Kind) {
        switch kind {
        case .unread:
            detach(unread)
        case .drip:
            let connections = (0..<HostileClients.admitted - 10).map { _ in connect(blocking: false) }
            detach { drip(connections) }
        case .crowd:
            crowd()
            for _ in 0..<4 { detach { while true { _ = ask() } } }
        case .vanish:
            for _ in 0..<4 { detach(vanish) }
        case .cancelStorm:
            for _ in 0..<8 { detach(storm) }
        case .pipeline:
            detach { while true { pipeline(reads: false) } }
            detach { while true { pipeline(reads: true) } }
        }
        usleep(200_000)
    }

    private func detach(_ body: @escaping @Sendable () -> Void) { Thread.detachNewThread(body) }

    private static let info = Array((FloodRequests.info + "\n").utf8)

    // MARK: Connections

    private func connect(blocking: Bool = true) -> Int32 {
        while true {
            if let descriptor = UserSockets.connect(to: socket) {
                if !blocking { _ = fcntl(descriptor, F_SETFL, O_NONBLOCK) }
                return descriptor
            }
            tally.add("failures to connect")
            usleep(1000)
        }
    }

    /// Sends all of it, unless the other side closes.
    private func send(_ bytes: [UInt8], over descriptor: Int32) -> Bool {
        var sent = 0
        while sent < bytes.count {
            let count = bytes.withUnsafeBytes { write(descriptor, $0.baseAddress?.advanced(by: sent), $0.count - sent) }
            guard count > 0 else { return false }
            sent += count
        }
        return true
    }

    /// A new connection that sends a call, and is kept if it is answered and not refused.
    private func ask() -> Int32? {
        let descriptor = connect()
        _ = send(Self.info, over: descriptor)
        var buffer = [UInt8](repeating: 0, count: 1 << 14)
        let count = read(descriptor, &buffer, buffer.count)
        let answer = buffer[..<max(0, count)]
        tally.addAnswers(in: answer)
        if count <= 0 { tally.add("connections without an answer") }
        let isRefused = String(decoding: answer, as: UTF8.self).contains("-32003")
        guard count <= 0 || isRefused else { return descriptor }
        close(descriptor)
        return nil
    }

    // MARK: Attacks

    private func unread() {
        let texts = FloodRequests.unread.flatMap { Array(repeating: Array($0.0.utf8), count: $0.1) }
        var polls = texts.map { _ in pollfd(fd: connect(blocking: false), events: Int16(POLLOUT), revents: 0) }
        var sent = texts.map { _ in 0 }
        while poll(&polls, nfds_t(polls.count), -1) > 0 {
            for index in polls.indices where polls[index].revents != 0 {
                let text = texts[index]
                let count = text.withUnsafeBytes {
                    write(polls[index].fd, $0.baseAddress?.advanced(by: sent[index]), $0.count - sent[index])
                }
                if count > 0 {
                    sent[index] = (sent[index] + count) % text.count
                    if sent[index] == 0 { tally.add("lines or parts of lines") }
                } else if errno != EAGAIN {
                    tally.add("connections that were closed")
                    close(polls[index].fd)
                    (polls[index].fd, sent[index]) = (connect(blocking: false), 0)
                }
            }
        }
    }

    /// Each has its turn once a second.
    private func drip(_ connections: [Int32]) {
        var connections = connections
        tally.add("connections", connections.count)
        let turns = 100
        var turn = 0
        while true {
            for index in stride(from: turn % turns, to: connections.count, by: turns) {
                // They do not all come to the ends of their lines in the same second.
                let byte = Self.info[(turn / turns + index) % Self.info.count]
                if withUnsafePointer(to: byte, { write(connections[index], $0, 1) }) == 1 {
                    tally.add("bytes")
                } else if errno != EAGAIN {
                    tally.add("connections that were closed")
                    close(connections[index])
                    connections[index] = connect(blocking: false)
                }
            }
            usleep(10_000)
            turn += 1
        }
    }

    private func crowd() {
        var kept = 0
        for _ in 0..<HostileClients.tried where ask() != nil { kept += 1 }
        tally.add("connections kept", kept)
    }

    private func vanish() {
        let submission =
            #"{"jsonrpc":"2.0","id":1,"method":"job.submit","params":{"source":{"type":"value","value":"ä"}}}"#
        let wait = #"{"jsonrpc":"2.0","id":1,"method":"job.watch","params":{"all":true}}"# + "\n"
        let texts = [
            Array(submission.utf8.dropLast(5)), Array((submission + "\n").utf8),
            Array((wait + submission + "\n" + submission).utf8.dropLast(20)), [],
        ]
        var number = 0
        while true {
            let descriptor = connect()
            _ = send(texts[number % texts.count], over: descriptor)
            close(descriptor)
            tally.add("connections")
            number += 1
        }
    }

    /// Each job, and each tree of jobs, is cancelled twice: as soon as its submission is answered, and then again.
    private func storm() {
        let timer = #"{"source":{"type":"timer","seconds":3600}}"#
        let children = Array(repeating: timer, count: 10).joined(separator: ",")
        let list = #"{"source":{"type":"list","jobs":[\#(children)]}}"#
        let tree = #"{"type":"list","jobs":[\#(list),\#(list)]}"#
        let sources = [#"{"type":"timer","seconds":3600}"#, tree]
        var number = 0
        func submission() -> String {
            number += 1
            return #"{"jsonrpc":"2.0","id":1,"method":"job.submit","params":{"tags":["flood"],"source":"#
                + sources[number % sources.count] + "}}\n"
        }
        func cancel(_ id: Int, _ job: Substring) -> String {
            #"{"jsonrpc":"2.0","id":\#(id),"method":"job.cancel","params":{"job":\#(job)}}"# + "\n"
        }
        let descriptor = connect()
        _ = send(Array((0..<16).map { _ in submission() }.joined().utf8), over: descriptor)
        var partial: [UInt8] = []
        var buffer = [UInt8](repeating: 0, count: 1 << 16)
        while true {
            let count = read(descriptor, &buffer, buffer.count)
            guard count > 0 else { return tally.add("connections that were closed") }
            partial += buffer[..<count]
            guard let last = partial.lastIndex(of: UInt8(ascii: "\n")) else { continue }
            tally.addAnswers(in: partial[...last])
            var reply = ""
            for line in partial[..<last].split(separator: UInt8(ascii: "\n")) {
                let line = String(decoding: line, as: UTF8.self)
                if line.contains(#""created":true"#), let start = line.firstRange(of: #""job":"#)?.upperBound {
                    let job = line[start...].prefix { $0.isNumber }
                    reply += cancel(2, job) + cancel(3, job)
                } else if !line.contains(#""id":2,"#) {
                    reply += submission()
                }
            }
            partial.removeSubrange(...last)
            guard send(Array(reply.utf8), over: descriptor) else { return }
        }
    }

    /// As fast as the daemon takes them; then the connection goes.
    private func pipeline(reads: Bool) {
        let lines = [
            FloodRequests.info, #"{"jsonrpc":"2.0","id":2,"method":"job.get","params":{"job":999999999}}"#, "nonsense",
            #"{"jsonrpc":"2.0","id":3,"method":"none"}"#,
        ]
        let block = Array((lines.joined(separator: "\n") + "\n").utf8)
        let blocks = Array(repeating: block, count: 250).flatMap(\.self)
        let count = 1_000_000 / (250 * lines.count)
        let descriptor = connect(blocking: false)
        defer { close(descriptor) }
        let size = blocks.count * count
        var (sent, answered) = (0, 0)
        var buffer = [UInt8](repeating: 0, count: 1 << 20)
        var polled = pollfd(fd: descriptor, events: 0, revents: 0)
        while sent < size || reads && answered < 1_000_000 {
            polled.events = Int16((sent < size ? POLLOUT : 0) | (reads ? POLLIN : 0))
            _ = poll(&polled, 1, -1)
            if polled.revents & Int16(POLLIN) != 0 {
                let count = read(descriptor, &buffer, buffer.count)
                guard count > 0 else { return tally.add("readers that were closed") }
                tally.addAnswers(in: buffer[..<count])
                answered += buffer[..<count].count { $0 == UInt8(ascii: "\n") }
            } else if polled.revents & Int16(POLLHUP | POLLERR) != 0 {
                return tally.add(reads ? "readers that were closed" : "connections that were closed")
            }
            guard polled.revents & Int16(POLLOUT) != 0 else { continue }
            let written = blocks.withUnsafeBytes {
                let start = sent % blocks.count
                return write(descriptor, $0.baseAddress?.advanced(by: start), blocks.count - start)
            }
            if written > 0 { sent += written }
        }
        tally.add("times a million lines")
    }
}
