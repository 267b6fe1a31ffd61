import SystemPackage
import CLinux
import Dispatch
import Glibc

/// A listening Unix socket, created here or handed over.
package struct Listener: Sendable {
    /// The socket; ``connections(_:)`` closes it.
    package let descriptor: Int32
    /// The path of the socket; nil if it was handed over.
    package let path: String?
    /// Whether another process keeps listening on a copy of the socket: its file then stays when this one ends.
    package var isKept = false

    /// The maximum length of a path in bytes: `sun_path` ends with a zero.
    package static let longestPath = MemoryLayout.size(ofValue: sockaddr_un().sun_path) - 1

    /// Adopts a listening socket.
    package init(adopting descriptor: Int32) { self.init(descriptor, path: nil) }

    private init(_ descriptor: Int32, path: String?, isKept: Bool = false) {
        (self.descriptor, self.path, self.isKept) = (descriptor, path, isKept)
        // Accepting must not block, regardless of who created the socket.
        _ = fcntl(descriptor, F_SETFL, fcntl(descriptor, F_GETFL) | O_NONBLOCK)
    }

    /// Resumes an earlier daemon's socket at `path`; nil if it is another socket, or its file is gone.
    package init?(resuming descriptor: Int32, path: String, mode: UInt32, group: String?) throws(ListenerError) {
        var address = sockaddr_un()
        let isKnown = Self.with(&address) { (pointer, size) in
            var size = size
            return getsockname(descriptor, pointer, &size) == 0
        }
        let bound = withUnsafeBytes(of: &address.sun_path) { String(decoding: $0.prefix { $0 != 0 }, as: UTF8.self) }
        var status = stat()
        guard isKnown, bound == path, lstat(path, &status) == 0, status.st_mode & S_IFMT == S_IFSOCK else { return nil }
        let groupID = try group.map { (name) throws(ListenerError) in try Self.group(name) }
        guard Self.lets(groupID, mode, to: path) else { throw Self.failure("listen at", path) }
        self.init(descriptor, path: path, isKept: true)
    }

    /// Listens at `path`; replaces a socket file without a listener, but nothing else.
    package init(path: String, mode: UInt32, group: String?) throws(ListenerError) {
        var address = sockaddr_un()
        address.sun_family = sa_family_t(AF_UNIX)
        guard 1...Self.longestPath ~= path.utf8.count else {
            throw ListenerError(
                "The socket path \(path) must be 1 to \(Self.longestPath) bytes long; choose another with --socket.")
        }
        withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: path.utf8) }
        let groupID = try group.map { (name) throws(ListenerError) in try Self.group(name) }
        try Self.clear(path, &address)
        let descriptor = socket(AF_UNIX, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
        guard descriptor >= 0 else { throw Self.failure("make a socket for", path) }
        // No client can connect before the mode is set, as none can before `listen`.
        guard Self.with(&address, { bind(descriptor, $0, $1) }) == 0, Self.lets(groupID, mode, to: path),
            listen(descriptor, 1024) == 0
        else {
            let error = Self.failure("listen at", path)
            close(descriptor)
            throw error
        }
        self.init(descriptor, path: path)
    }

    /// Sets the group and mode of the socket's file.
    private static func lets(_ group: UInt32?, _ mode: UInt32, to path: String) -> Bool {
        group.map { chown(path, uid_t.max, $0) } ?? 0 == 0 && chmod(path, mode) == 0
    }

    private static func with<Value>(
        _ address: inout sockaddr_un, _ body: (UnsafeMutablePointer<sockaddr>, socklen_t) -> Value
    ) -> Value {
        withUnsafeMutablePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                body($0, socklen_t(MemoryLayout<sockaddr_un>.size))
            }
        }
    }

    /// Returns the numeric id of a group.
    package static func group(_ name: String) throws(ListenerError) -> UInt32 {
        // glibc makes room for any number of members, and no other thread asks for groups by name.
        guard let group = getgrnam(name) else {
            throw ListenerError("There is no group \"\(name)\"; create it or name another.")
        }
        return group.pointee.gr_gid
    }

    private static func clear(_ path: String, _ address: inout sockaddr_un) throws(ListenerError) {
        var status = stat()
        guard lstat(path, &status) == 0 else { return }
        guard status.st_mode & S_IFMT == S_IFSOCK else {
            throw ListenerError("\(path) is there and is no socket; remove it or choose another path with --socket.")
        }
        let probe = socket(AF_UNIX, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
        defer { close(probe) }
        if with(&address, { connect(probe, $0, $1) }) == 0 || errno != ECONNREFUSED {
            throw ListenerError(
                "Another daemon listens at \(path); stop it or choose another path with --socket.", isInUse: true)
        }
        unlink(path)
    }

    private static func failure(_ action: String, _ path: String) -> ListenerError {
        let reason = Errno(rawValue: errno)
        return ListenerError("Cannot \(action) \(path): \(reason); check the directory or choose another path.")
    }

    /// Returns a stream of the connections that `admit` creates, until `stop` is called.
    /// `admit` owns the descriptor, returns nil if it closed it, and bounds how many wait here.
    func connections<Connection: Sendable>(
        _ admit: @escaping @Sendable (_ descriptor: Int32) -> Connection?
    ) -> (stream: AsyncStream<Connection>, stop: @Sendable () -> Void) {
        let (stream, continuation) = AsyncStream.makeStream(of: Connection.self)
        let queue = DispatchQueue(label: "deferd.accept")
        let source = DispatchSource.makeReadSource(fileDescriptor: descriptor, queue: queue)
        let (descriptor, path) = (descriptor, isKept ? nil : path)
        source.setEventHandler {
            // A bounded number at once, so that a client that connects without end does not starve the rest.
            for _ in 0..<64 {
                let connection = deferd_accept(descriptor)
                if connection < 0 {
                    // Out of descriptors: the kernel keeps the connection; a short pause avoids a busy loop.
                    if errno == EMFILE || errno == ENFILE { usleep(50_000) }
                    return
                }
                if let admitted = admit(connection) { continuation.yield(admitted) }
            }
        }
        source.setCancelHandler {
            close(descriptor)
            if let path { unlink(path) }
            continuation.finish()
        }
        source.activate()
        // Other threads only cancel it, which is safe from any thread.
        nonisolated(unsafe) let active = source
        return (stream, { active.cancel() })
    }
}

/// A failure to listen.
package struct ListenerError: Error, Sendable, Equatable {
    /// A sentence that names the path and the next step.
    package let message: String
    /// Whether another daemon listens there.
    package let isInUse: Bool

    package init(_ message: String, isInUse: Bool = false) {
        self.message = message
        self.isInUse = isInUse
    }
}
