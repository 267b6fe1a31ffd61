import Foundation
import Glibc
import Synchronization

/// The process of ``HostileClients``: `soak hostile-clients KIND UID SOCKET`.
enum HostileProcess {
    static func run(_ arguments: [String]) throws -> Never {
        guard arguments.count == 3, let kind = HostileClients.Kind(rawValue: arguments[0]),
            let user = uid_t(arguments[1])
        else { throw SoakError("Hostile clients need a kind, a user and a socket.") }
        var limit = rlimit()
        getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit)
        limit.rlim_cur = limit.rlim_max
        setrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit)
        guard Int(clamping: limit.rlim_cur) > HostileClients.tried + 100 else {
            throw SoakError("The hard limit of \(limit.rlim_cur) descriptors is too low; see ulimit -Hn.")
        }
        guard setgroups(0, nil) == 0, setgid(user) == 0, setuid(user) == 0 else {
            throw SoakError("This is no process of user \(user): \(errno)")
        }
        // Threads inherit it from this one. A failure does not matter.
        var parameters = sched_param()
        _ = sched_setscheduler(0, RequestFlood.idlePolicy, &parameters)
        let attack = Attack(socket: arguments[2])
        Thread.detachNewThread {
            attack.start(kind)
            say("ready\n")
        }
        // Ends with the process that started it.
        var byte: UInt8 = 0
        while read(0, &byte, 1) > 0 {}
        say(attack.told)
        _exit(0)
    }

    private static func say(_ text: String) {
        let bytes = Array(text.utf8)
        _ = write(1, bytes, bytes.count)
    }
}

/// The number of each event.
final class Tally: Sendable {
    private let counts = Mutex<[String: Int]>([:])

    func add(_ what: String, _ count: Int = 1) {
        if count > 0 { counts.withLock { $0[what, default: 0] += count } }
    }

    /// Counts the answers in `bytes`: results, and errors by their codes, where each is in one piece.
    func addAnswers(in bytes: ArraySlice<UInt8>) {
        var (lines, errors) = (0, [Int: Int]())
        for index in bytes.indices {
            if bytes[index] == UInt8(ascii: "\n") { lines += 1 }
            // "code":-32003
            guard bytes[index] == UInt8(ascii: "-"), index > bytes.startIndex, index + 5 < bytes.endIndex,
                bytes[index - 1] == UInt8(ascii: ":"), bytes[index + 1] == UInt8(ascii: "3")
            else { continue }
            let code = bytes[(index + 1)...(index + 5)].reduce(0) { $0 * 10 + Int($1) - 48 }
            errors[code, default: 0] += 1
        }
        add("results", lines - errors.values.reduce(0, +))
        for (code, count) in errors { add("-\(code)", count) }
    }

    var description: String {
        counts.withLock { $0.sorted { $0.key < $1.key }.map { "\($0.value) \($0.key)" }.joined(separator: ", ") }
    }
}
