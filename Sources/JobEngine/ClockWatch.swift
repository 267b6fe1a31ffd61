import CLinux
import Dispatch
import Glibc

/// Tells that somebody set the wall clock, without looking at it: the kernel says so.
final class ClockWatch {
    private let source: any DispatchSourceRead

    /// `changed` is called on `queue`. Nil where the kernel cannot tell; then it shows with the next thing that happens.
    init?(on queue: DispatchQueue, changed: @escaping @Sendable () -> Void) {
        let watch = deferd_watch_clock()
        guard watch >= 0 else { return nil }
        source = DispatchSource.makeReadSource(fileDescriptor: watch, queue: queue)
        source.setEventHandler {
            _ = deferd_watch_clock_again(watch)
            changed()
        }
        source.setCancelHandler { close(watch) }
        source.activate()
    }

    deinit { source.cancel() }
}
