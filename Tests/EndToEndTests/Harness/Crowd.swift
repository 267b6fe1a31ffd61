/// Many bare connections at once, without a thread for each.
final class Crowd {
    private(set) var members: [FileDescriptor] = []

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
