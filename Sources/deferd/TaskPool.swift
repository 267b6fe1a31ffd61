import CLinux
import NIOCore
import NIOPosix

/// Where tasks run that belong to no executor.
enum TaskPool {
    /// Lets such tasks run on the event loops, and so none of them needs a thread of its own or wakes one.
    ///
    /// To be called before the first of them. They must not block, as no task must that waits for an event loop.
    static func becomeEventLoops() {
        deferd_take_tasks { task in
            // It is handed over once, and run once.
            nonisolated(unsafe) let task = task
            // The loop that this thread belongs to, if any: then it changes no thread.
            MultiThreadedEventLoopGroup.singleton.any().execute { deferd_run_task(task) }
        }
    }
}
