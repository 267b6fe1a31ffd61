import Foundation
import Glibc
import JobCore
import Synchronization

/// What all users' accounts may have together, so that the daemon refuses before the kernel kills it.
///
/// While there is less, each user has a bound of their own. From then on each has an equal part: who has more is refused,
/// and who has little goes on undisturbed.
package final class MemoryTotal: Sendable {
    private let most: Atomic<Int>
    private let used = Atomic<Int>(0)
    /// How many accounts each user has; a moment can have two, while one ends and the next begins.
    private let users = Mutex(Users())
    /// How many users there are, which is asked for with each line that is read.
    private let userCount = Atomic<Int>(0)

    private struct Users {
        var accounts: [UInt32: Int] = [:]
        var connected = ConnectedUsers.none
        var observer: (@Sendable (ConnectedUsers) -> Void)?
    }

    package init(limit: Int) {
        most = Atomic(limit)
    }

    /// Raises what there is at least, as one user's part may be.
    func raise(toAtLeast least: Int) {
        if most.load(ordering: .relaxed) < least { most.store(least, ordering: .relaxed) }
    }

    /// What an account may have now that never has more than `most`.
    func share(of most: Int) -> Int {
        let limit = self.most.load(ordering: .relaxed)
        if used.load(ordering: .relaxed) < limit { return most }
        return min(most, limit / max(1, userCount.load(ordering: .relaxed)))
    }

    /// Whether more than one user is there.
    var hasSeveralUsers: Bool { userCount.load(ordering: .relaxed) > 1 }

    /// Has `observer` called with who is there now, and with each change of that, one after the other; it must not wait.
    func onChange(_ observer: @escaping @Sendable (ConnectedUsers) -> Void) {
        users.withLock { users in
            users.observer = observer
            observer(users.connected)
        }
    }

    func enter(_ user: UInt32) { add(1, of: user) }
    func leave(_ user: UInt32) { add(-1, of: user) }

    private func add(_ accounts: Int, of user: UInt32) {
        users.withLock { users in
            let count = users.accounts[user, default: 0] + accounts
            users.accounts[user] = count > 0 ? count : nil
            userCount.store(users.accounts.count, ordering: .relaxed)
            let connected =
                users.accounts.count > 1 ? .several : users.accounts.keys.first.map(ConnectedUsers.one) ?? .none
            guard connected != users.connected else { return }
            users.connected = connected
            users.observer?(connected)
        }
    }

    /// Counts bytes, or no longer where negative.
    func add(_ bytes: Int) { used.add(bytes, ordering: .relaxed) }

    // MARK: - How much there is

    /// A quarter of what the process may use, and at least `least`: what is counted takes about twice its bytes in buffers and
    /// in the allocator, and the rest is for documents, transfers, the store and the program itself.
    package static func quarter(atLeast least: Int) -> MemoryTotal {
        MemoryTotal(limit: max(least, available() / 4))
    }

    /// What the process may use: the least of the machine's memory and the bounds of its control groups, as `MemoryMax=` sets
    /// them. `groups` is where cgroup v2 is mounted, and `own` what the kernel says which group this is.
    static func available(groups: String = "/sys/fs/cgroup", own: String = "/proc/self/cgroup") -> Int {
        let pages = (sysconf(Int32(_SC_PHYS_PAGES)), sysconf(Int32(_SC_PAGESIZE)))
        var least = pages.0 > 0 && pages.1 > 0 ? pages.0.multipliedReportingOverflow(by: pages.1).partialValue : .max
        let lines = ((try? String(contentsOfFile: own, encoding: .utf8)) ?? "").split(separator: "\n")
        guard let path = lines.first(where: { $0.hasPrefix("0::/") })?.dropFirst("0::".count) else { return least }
        var group = path.split(separator: "/")
        while true {
            for file in ["memory.max", "memory.high"] {
                let name = ([Substring(groups)] + group + [Substring(file)]).joined(separator: "/")
                let text = (try? String(contentsOfFile: name, encoding: .utf8)) ?? ""
                // Another word than a number is "max".
                if let bound = Int(text.trimmingCharacters(in: .whitespacesAndNewlines)), bound > 0 {
                    least = min(least, bound)
                }
            }
            if group.isEmpty { return least }
            group.removeLast()
        }
    }
}
