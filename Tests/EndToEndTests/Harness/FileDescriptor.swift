import Glibc
import Synchronization
import Testing

/// A file descriptor with the calls that tests make. Once it is closed its number, which may be another's by then, is
/// left alone.
final class FileDescriptor: Sendable {
    let number: Int32
    private let isOpen = Mutex(true)

    /// Writing to a closed peer is an error and must not end this process.
    private static let ignoresBrokenPipes: Void = { signal(SIGPIPE, SIG_IGN) }()

    init(number: Int32) {
        self.number = number
        Self.ignoresBrokenPipes
    }

    /// The next bytes; nil at the end or when the descriptor was closed.
    func read() -> [UInt8]? {
        var failed = false
        let bytes = [UInt8](unsafeUninitializedCapacity: 64 << 10) { buffer, count in
            var result = 0
            repeat { result = Glibc.read(number, buffer.baseAddress, buffer.count) } while result < 0 && errno == EINTR
            failed = result <= 0
            count = max(0, result)
        }
        return failed ? nil : bytes
    }

    /// Writes all of `bytes`; unwritable bytes are dropped, because the reader's end shows that by itself.
    func write(_ bytes: [UInt8]) {
        var rest = bytes[...]
        while !rest.isEmpty, isOpen.withLock(\.self) {
            let written = rest.withUnsafeBytes { Glibc.write(number, $0.baseAddress, $0.count) }
            if written < 0, errno == EINTR { continue }
            guard written > 0 else { return }
            rest = rest.dropFirst(written)
        }
    }

    func close() {
        isOpen.withLock { isOpen in
            if isOpen { _ = Glibc.close(number) }
            isOpen = false
        }
    }

    /// Shuts down one direction of a socket or both; readers at the other side see the end.
    func shutDown(_ direction: Int = SHUT_RDWR) {
        isOpen.withLock { if $0 { shutdown(number, Int32(direction)) } }
    }
}

/// Both ends of a pipe.
struct PipeEnds: Sendable {
    let reading: FileDescriptor
    let writing: FileDescriptor

    init() throws {
        let ends = Inheritance.none { () -> [Int32]? in
            var ends: [Int32] = [0, 0]
            return pipe(&ends) == 0 ? ends : nil
        }
        try #require(ends.count == 2, "no pipe: \(String(cString: strerror(errno)))")
        (reading, writing) = (FileDescriptor(number: ends[0]), FileDescriptor(number: ends[1]))
    }
}

/// Keeps descriptors from programs that are started meanwhile, if no call can create them with close-on-exec.
enum Inheritance {
    private static let lock = Mutex(())

    /// Makes descriptors that no program inherits; none where `make` gives nil.
    static func none(_ make: () -> [Int32]?) -> [Int32] {
        lock.withLock { _ in
            let made = make() ?? []
            for descriptor in made { _ = fcntl(descriptor, F_SETFD, FD_CLOEXEC) }
            return made
        }
    }

    /// Starts a program while no descriptor is half made.
    static func starting<Value>(_ start: () -> Value) -> Value {
        lock.withLock { _ in start() }
    }
}
