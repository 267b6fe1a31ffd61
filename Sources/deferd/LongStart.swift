import Dispatch
import Logging
import Synchronization
import Systemd

/// Extends the service manager's start timeout, again and again, while a start takes long.
final class LongStart: Sendable {
    private let isOver = Mutex(false)
    private let queue = DispatchQueue(label: "deferd.start")
    private let logger: Logger

    init(logger: Logger) {
        self.logger = logger
    }

    func begin() {
        guard !isOver.withLock({ $0 }) else { return }
        do { try ServiceNotifier().extendTimeout(.seconds(60)) } catch {
            logger.warning("The service manager was not told.", metadata: ["error": "\(error)"])
        }
        queue.asyncAfter(deadline: .now() + 20) { self.begin() }
    }

    func end() { isOver.withLock { $0 = true } }
}
