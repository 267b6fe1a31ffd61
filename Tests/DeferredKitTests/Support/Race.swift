import Foundation
import Synchronization

/// Runs `body` on this many new threads, all released at the same moment, and returns when all have finished.
///
/// It uses threads and conditions, not dispatch queues, because the thread sanitizer knows these on all systems.
func race(_ count: Int, _ body: @escaping @Sendable (Int) -> Void) {
    let condition = NSCondition()
    let ready = Atomic(0)
    let running = Shared(count)
    for index in 0..<count {
        let thread = Thread {
            ready.add(1, ordering: .sequentiallyConsistent)
            while ready.load(ordering: .sequentiallyConsistent) < count { sched_yield() }
            body(index)
            condition.lock()
            running.value -= 1
            condition.signal()
            condition.unlock()
        }
        thread.stackSize = 512 * 1024
        thread.start()
    }
    condition.lock()
    while running.value > 0 { condition.wait() }
    condition.unlock()
}

/// A number protected by another object's lock.
private final class Shared: @unchecked Sendable {
    // Unchecked: every access is between `lock` and `unlock` of the condition above.
    var value: Int
    init(_ value: Int) { self.value = value }
}
