import Dispatch
import Glibc
import JobModel
import Synchronization

/// Hears, on a connection and a thread of its own, what other nodes tell. Nothing that is stored depends on it but how soon it
/// is asked for: a node asks for news twice a second in any case.
final class NewsListener: Sendable {
    private let settings: PostgreSQLSettings
    /// Begins the node's own messages, which are left out.
    let prefix: String
    private let isClosed = Atomic(false)

    /// Milliseconds between two looks at whether it is closed, and before a broken connection is replaced.
    private static let pause: Int32 = 500

    init(_ settings: PostgreSQLSettings, instance: String) { (self.settings, prefix) = (settings, "\(instance):") }

    /// Calls `hear` from the thread with each message until it is closed.
    func start(_ hear: @escaping @Sendable (String) -> Void) {
        DispatchQueue(label: "deferd.news").async { [self] in
            while !isClosed.load(ordering: .relaxed) {
                if let connection = try? PostgreSQLConnection(settings, errors: .read) {
                    listen(connection, hear)
                }
                usleep(UInt32(Self.pause) * 1000)
            }
        }
    }

    private func listen(_ connection: PostgreSQLConnection, _ hear: (String) -> Void) {
        do {
            try connection.send("LISTEN deferd")
            _ = try connection.finish()
            while !isClosed.load(ordering: .relaxed) {
                for text in try connection.notifications(within: Self.pause) where !text.hasPrefix(prefix) {
                    hear(text.firstIndex(of: ":").map { String(text[text.index(after: $0)...]) } ?? "")
                }
            }
        } catch {}
    }

    func close() { isClosed.store(true, ordering: .relaxed) }
}
