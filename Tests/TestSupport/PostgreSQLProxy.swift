import Dispatch
import Glibc
import Synchronization

/// A Unix socket before a PostgreSQL server. It knows of the protocol what it takes to see a commit, where it can cut the
/// session or stop forwarding.
package final class PostgreSQLProxy: Sendable {
    /// What happens at a commit.
    package enum Cut: Sendable {
        /// The session is cut, and the commit does not reach the server.
        case before
        /// The session is cut once the commit was sent.
        case during
        /// The session is cut once the server has answered.
        case after
        /// Nothing is forwarded until ``release()``, from the commit on.
        case holdBefore
        /// Nothing is forwarded until ``release()``, from the answer on.
        case holdAfter
    }

    /// What the sessions share with the proxy.
    fileprivate final class Control: Sendable {
        struct Wish {
            let cut: Cut
            let statement: String
            let done: @Sendable () -> Void
        }

        let wish = Mutex<Wish?>(nil)
        /// Entered while nothing is forwarded.
        let gate = DispatchGroup()

        /// Takes the wish for the commit of a transaction with these statements.
        func take(_ statements: [String]) -> Wish? {
            wish.withLock { wish in
                guard let found = wish, statements.contains(where: { $0.hasPrefix(found.statement) }) else {
                    return nil
                }
                wish = nil
                return found
            }
        }
    }

    private let directory: TemporaryDirectory
    private let server: TemporaryDirectory
    private let listener: Int32
    private let control = Control()

    package init(before cluster: PostgreSQLCluster) throws {
        directory = try TemporaryDirectory()
        server = cluster.directory
        listener = Self.socket()
        let isListening = Self.withSocket(in: directory) { bind(listener, $0, $1) } == 0 && listen(listener, 100) == 0
        guard isListening else { throw SystemCallError(errno) }
        let thread = DispatchQueue(label: "proxy")
        thread.async { [listener, server, control] in
            while true {
                let client = accept(listener, nil, nil)
                guard client >= 0 else { break }
                _ = fcntl(client, F_SETFD, FD_CLOEXEC)
                let connection = Self.socket()
                _ = Self.withSocket(in: server) { connect(connection, $0, $1) }
                Session(client: client, server: connection, control).start()
            }
            close(listener)
        }
    }

    deinit { shutdown(listener, Int32(SHUT_RDWR)) }

    /// The address of a database of the server through the proxy.
    package func address(for direct: String) -> String {
        direct.replacing(server.path, with: directory.path)
    }

    /// Cuts at the next commit of a transaction with a statement that begins with `statement`; calls `done` then.
    package func cut(_ cut: Cut, at statement: String, done: @escaping @Sendable () -> Void) {
        control.wish.withLock { $0 = Control.Wish(cut: cut, statement: statement, done: done) }
    }

    /// Forwards again what was held.
    package func release() { control.gate.leave() }

    private static func socket() -> Int32 {
        Glibc.socket(AF_UNIX, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
    }

    private static func withSocket<Value>(
        in directory: TemporaryDirectory, _ body: (UnsafePointer<sockaddr>, socklen_t) -> Value
    ) -> Value {
        var address = sockaddr_un()
        address.sun_family = sa_family_t(AF_UNIX)
        withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: "\(directory.path)/.s.PGSQL.5432".utf8) }
        return withUnsafePointer(to: address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                body($0, socklen_t(MemoryLayout<sockaddr_un>.size))
            }
        }
    }
}

/// A client's connection and the one to the server, with a thread for each direction.
private final class Session: Sendable {
    private let client: Int32
    private let server: Int32
    private let control: PostgreSQLProxy.Control
    /// The wish that the next answers carry out.
    private let awaited = Mutex<PostgreSQLProxy.Control.Wish?>(nil)

    init(client: Int32, server: Int32, _ control: PostgreSQLProxy.Control) {
        (self.client, self.server, self.control) = (client, server, control)
    }

    deinit {
        close(client)
        close(server)
    }

    func start() {
        DispatchQueue(label: "proxy.requests").async { [self] in forwardRequests() }
        DispatchQueue(label: "proxy.answers").async { [self] in forwardAnswers() }
    }

    private func forwardRequests() {
        var messages = Messages(hasStart: true)
        var statements: [String: String] = [:]
        var transaction: [String] = []
        var wish: PostgreSQLProxy.Control.Wish?
        while messages.receive(from: client) {
            var bytes: [UInt8] = []
            while let message = messages.next() {
                let texts = message.texts
                switch message.kind {
                case "P": statements[texts[0]] = texts[1]
                case "B":
                    let statement = statements[texts[1]] ?? ""
                    transaction.append(statement)
                    if statement == "ROLLBACK" { transaction = [] }
                    guard statement == "COMMIT" else { break }
                    wish = control.take(transaction)
                    transaction = []
                    guard wish?.cut == .before || wish?.cut == .holdBefore else { break }
                    send(bytes, to: server)
                    bytes = []
                    if wish?.cut == .before { return end(wish) }
                    control.gate.enter()
                    wish?.done()
                    wish = nil
                default: break
                }
                bytes += message.bytes
                // The end of what the client sends with the commit.
                guard message.kind == "S", let found = wish else { continue }
                wish = nil
                switch found.cut {
                case .holdAfter: control.gate.enter()
                case .after: awaited.withLock { $0 = found }
                default: break
                }
                send(bytes, to: server)
                bytes = []
                if found.cut == .during { return end(found) }
                if found.cut == .holdAfter { found.done() }
            }
            control.gate.wait()
            send(bytes, to: server)
        }
        shutdown(server, Int32(SHUT_WR))
    }

    private func forwardAnswers() {
        var messages = Messages(hasStart: false)
        while messages.receive(from: server) {
            let wish = awaited.withLock(\.self)
            var bytes: [UInt8] = []
            while let message = messages.next() {
                bytes += message.bytes
                if wish != nil, message.kind == "Z" { return end(wish) }
            }
            control.gate.wait()
            if wish == nil { send(bytes, to: client) }
        }
        shutdown(client, Int32(SHUT_WR))
    }

    private func end(_ wish: PostgreSQLProxy.Control.Wish?) {
        for descriptor in [client, server] { shutdown(descriptor, Int32(SHUT_RDWR)) }
        wish?.done()
    }

    private func send(_ bytes: [UInt8], to descriptor: Int32) {
        var rest = bytes[...]
        while !rest.isEmpty {
            let count = rest.withUnsafeBytes {
                Glibc.send(descriptor, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL))
            }
            guard count > 0 else { return }
            rest = rest.dropFirst(count)
        }
    }
}

/// The messages of one direction of a session.
private struct Messages {
    struct Message {
        /// Its letter; the first one of a client has none.
        let kind: Character?
        let bytes: [UInt8]

        /// The first two texts in it.
        var texts: [String] {
            bytes.dropFirst(5).split(separator: 0, maxSplits: 2, omittingEmptySubsequences: false)
                .prefix(2).map { String(decoding: $0, as: UTF8.self) } + ["", ""]
        }
    }

    private var received: ArraySlice<UInt8> = []
    private var hasStart: Bool

    init(hasStart: Bool) { self.hasStart = hasStart }

    /// Waits for bytes; returns false at the end.
    mutating func receive(from descriptor: Int32) -> Bool {
        let bytes = [UInt8](unsafeUninitializedCapacity: 64 << 10) { buffer, count in
            count = max(0, read(descriptor, buffer.baseAddress, buffer.count))
        }
        received += bytes
        return !bytes.isEmpty
    }

    /// The next message that has come whole.
    mutating func next() -> Message? {
        let letters = hasStart ? 0 : 1
        let head = received.dropFirst(letters).prefix(4)
        guard head.count == 4 else { return nil }
        let length = letters + head.reduce(0) { $0 << 8 | Int($1) }
        guard received.count >= length else { return nil }
        let kind = hasStart ? nil : received.first.map { Character(Unicode.Scalar($0)) }
        defer { received = received.dropFirst(length) }
        hasStart = false
        return Message(kind: kind, bytes: Array(received.prefix(length)))
    }
}
