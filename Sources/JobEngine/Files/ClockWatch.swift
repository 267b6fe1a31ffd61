import CLinux
import Dispatch
import Glibc

/// Tells that somebody set the wall clock, without looking at it: the kernel says so.
final class ClockWatch: Sendable {
    // Nothing but its cancellation is asked of it.
    private nonisolated(unsafe) let source: (any DispatchSourceRead)?

    /// `changed` is called on `queue`. Where the kernel cannot tell, it shows with the next thing that happens.
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
