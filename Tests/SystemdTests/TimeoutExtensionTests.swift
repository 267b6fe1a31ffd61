import Logging
import Synchronization
import Testing

@testable import Systemd

@Suite struct TimeoutExtensionTests {
    /// Simulated counters of the kernel, and the requests to the manager.
    private final class Process: Sendable {
        let work = Mutex(TimeoutExtension.Work(processor: .zero, blocks: 0))
        let asked = Mutex<[Int]>([])

        func timeout() -> TimeoutExtension {
            TimeoutExtension(logger: Logger(label: "test"), work: { self.work.withLock { $0 } }) { seconds in
                self.asked.withLock { $0.append(seconds) }
            }
        }

        var count: Int { asked.withLock(\.count) }
    }

    @Test func timeout_isExtended_whileThereIsWork() {
        let process = Process()
        let timeout = process.timeout()
        timeout.begin()
        #expect(timeout.look() && process.count == 0, "nothing was done")
        process.work.withLock { $0.processor = .milliseconds(500) }
        #expect(timeout.look() && process.count == 1)
        #expect(timeout.look() && process.count == 1, "it hangs")
        process.work.withLock { $0.processor += .milliseconds(1) }
        #expect(timeout.look() && process.count == 1, "looking is no work")
        process.work.withLock { $0.blocks = 8 }
        #expect(timeout.look() && process.asked.withLock { $0 } == [60, 60])
    }

    @Test func timeout_isNotExtended_onceItIsOver() {
        let process = Process()
        let timeout = process.timeout()
        timeout.begin()
        timeout.end()
        process.work.withLock { $0.blocks = 8 }
        #expect(!timeout.look())
        #expect(process.count == 0)
        timeout.begin()
        process.work.withLock { $0.blocks = 16 }
        #expect(timeout.look() && process.count == 1)
    }

    @Test func timeout_isNotExtendedForEver() {
        let process = Process()
        let timeout = process.timeout()
        timeout.begin()
        var looks = 0
        repeat {
            looks += 1
            process.work.withLock { $0.blocks += 1 }
        } while timeout.look() && looks < 1000
        #expect(process.count == 360)
    }
}
