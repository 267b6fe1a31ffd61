import CLinux
import Dispatch
import Glibc

/// Reports that the wall clock was set, which the kernel signals.
final class ClockWatch: Sendable {
    // It is only cancelled.
    private nonisolated(unsafe) let source: (any DispatchSourceRead)?

    /// `changed` is called on `queue`. If the kernel cannot signal, the next input shows the change.
    init(on queue: DispatchQueue, changed: @escaping @Sendable () -> Void) {
        let watch = deferd_watch_clock()
        guard watch >= 0 else {
            source = nil
            return
        }
        let source = DispatchSource.makeReadSource(fileDescriptor: watch, queue: queue)
        source.setEventHandler {
            _ = deferd_watch_clock_again(watch)
            changed()
        }
        source.setCancelHandler { close(watch) }
        source.activate()
        self.source = source
    }

    deinit { source?.cancel() }
}
