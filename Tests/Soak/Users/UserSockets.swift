import Glibc
import JobClient
import Synchronization

/// Connections of other users: the kernel tells the daemon who connects, so that is who this process is for that moment.
final class UserSockets: Sendable {
    /// Without an entry in any file, as the kernel needs none.
    private static let first: uid_t = 64_001
    static let canBeOthers = geteuid() == 0

    private let path: String
    /// Whoever connects does it alone, as the user of all threads changes.
    private let turn = AsyncTurn()

    init(path: String) {
        self.path = path
    }

    /// Runs `connect` as the user of this number.
    private func connecting<Value: Sendable>(
        as number: Int, _ connect: @Sendable () async throws -> Value
    ) async throws -> Value {
        await turn.begin()
        if Self.canBeOthers { seteuid(Self.first + uid_t(number)) }
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

    /// A bare descriptor, for what no library does.
    func descriptor(of number: Int) async throws -> Int32 {
        try await connecting(as: number) { [path] in
            let descriptor = socket(
                AF_UNIX, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue | SOCK_NONBLOCK.rawValue), 0)
            var address = sockaddr_un()
            address.sun_family = sa_family_t(AF_UNIX)
            withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: path.utf8.prefix(100)) }
            let connected = withUnsafePointer(to: &address) { pointer in
                pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                    Glibc.connect(descriptor, $0, socklen_t(MemoryLayout<sockaddr_un>.size))
                }
            }
            guard connected == 0 else {
                close(descriptor)
                throw SoakError("No connection: \(errno)")
            }
            return descriptor
        }
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
