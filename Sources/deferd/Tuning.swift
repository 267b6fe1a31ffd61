import CTuning
import Foundation
import NIOCore
import NIOPosix

/// What makes the daemon smaller and quieter by means that the platform does not promise.
///
/// Nothing depends on any of it: with `DEFERD_TUNING=off` in its environment the daemon does without. The table in
/// Sources/README.md says what each gains.
enum Tuning {
    private static let isOn = ProcessInfo.processInfo.environment["DEFERD_TUNING"] != "off"

    /// To be called before there are threads and tasks.
    static func begin() {
        guard isOn else { return }
        deferd_settle_allocator()
        // Tasks that belong to no executor run on the event loops, and so none of them needs a thread of its own or wakes
        // one. They must not block, as no task must that waits for an event loop.
        deferd_redirect_tasks { task in
            // It is handed over once, and run once.
            nonisolated(unsafe) let task = task
            // The loop of this thread, if it is one's: then the task does not change threads.
            MultiThreadedEventLoopGroup.singleton.any().execute { deferd_run_task(task) }
        }
    }

    /// To be called once the daemon serves: most of its code was needed to start only.
    static func settle() {
        if isOn { deferd_release_image() }
    }
}
