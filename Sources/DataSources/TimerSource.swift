import DeferredKit
import JobModel
import LoopTasks
import NIOCore

/// The source `timer`: `null` after some seconds of an event loop's clock.
struct TimerSource: DataSource {
    let seconds: Double
    let loop: any EventLoop

    func start() -> Deferred<JSON, any Error> {
        let timer = ScheduledTimer()
        let promise = Promise<JSON, any Error> { _ in timer.cancel() }
        timer.set(
            loop.scheduleTask(in: .seconds(saturating: seconds)) {
                promise.succeed(.null)
            })
        return promise.deferred
    }
}
