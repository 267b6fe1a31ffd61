import Glibc
import JobClient
import Synchronization

/// Connections of other users: the kernel reports the user of this process at the moment of connecting to the daemon.
final class UserSockets: Sendable {
    /// Without an entry in any file, as the kernel needs none.
    private static let first: uid_t = 64_001
    static let canBeOthers = geteuid() == 0

    let path: String
    /// Only one connection is made at a time, because the user of all threads changes.
    private let turn = AsyncTurn()

    static func uid(of number: Int) -> uid_t { first + uid_t(number) }

    init(path: String) {
        self.path = path
    }

    /// Runs `connect` as the user of this number.
    private func connecting<Value: Sendable>(
        as number: Int, _ connect: @Sendable () async throws -> Value
    ) async throws -> Value {
        await turn.begin()
        if Self.canBeOthers { seteuid(Self.uid(of: number)) }
        let outcome: Result<Value, any Error>
        do { outcome = .success(try await connect()) } catch { outcome = .failure(error) }
        if Self.canBeOthers { seteuid(0) }
        await turn.end()
        return try outcome.get()
    }

    func client(of number: Int) async throws -> JobClient {
        try await connecting(as: number) { [path] in try await JobClient.connect(path: path) }
    }

    /// Runs `body` as the user who started this program.
    func asStarter<Value: Sendable>(_ body: @Sendable () -> Value) async -> Value {
        await turn.begin()
        let value = body()
        await turn.end()
        return value
    }

    /// A bare nonblocking descriptor, for operations that no library supports.
    func descriptor(of number: Int) async throws -> Int32 {
        try await connecting(as: number) { [path] in
            guard let descriptor = Self.connect(to: path) else { throw SoakError("No connection: \(errno)") }
            _ = fcntl(descriptor, F_SETFL, O_NONBLOCK)
            return descriptor
        }
    }

    /// A connection that waits for its turn; nil if there is none, with the reason in `errno`.
    static func connect(to path: String) -> Int32? {
        let descriptor = socket(AF_UNIX, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
        var address = sockaddr_un()
        address.sun_family = sa_family_t(AF_UNIX)
        withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: path.utf8.prefix(100)) }
        let connected = withUnsafePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                Glibc.connect(descriptor, $0, socklen_t(MemoryLayout<sockaddr_un>.size))
            }
        }
        if connected == 0 { return descriptor }
        close(descriptor)
        return nil
    }
}

/// Lets one after the other in.
private actor AsyncTurn {
    private var isBusy = false
    private var waiters: [CheckedContinuation<Void, Never>] = []

    func begin() async {
        guard isBusy else {
            isBusy = true
            return
        }
        await withCheckedContinuation { waiters.append($0) }
    }

    func end() {
        if waiters.isEmpty { isBusy = false } else { waiters.removeFirst().resume() }
    }
}
