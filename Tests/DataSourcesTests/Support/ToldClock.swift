import Dispatch
import NIOCore
import NIOEmbedded

/// A clock that also tells when something begins to sleep on it.
final class ToldClock: EventLoop {
    let loop = NIOAsyncTestingEventLoop()
    let sleeps = AsyncStream.makeStream(of: Void.self)

    var inEventLoop: Bool { loop.inEventLoop }
    var now: NIODeadline { loop.now }

    func execute(_ task: @escaping @Sendable () -> Void) { loop.execute(task) }

    func scheduleTask<T>(deadline: NIODeadline, _ task: @escaping @Sendable () throws -> T) -> Scheduled<T> {
        loop.scheduleTask(deadline: deadline, task)
    }

    func scheduleTask<T>(in time: TimeAmount, _ task: @escaping @Sendable () throws -> T) -> Scheduled<T> {
        defer { sleeps.continuation.yield() }
        return loop.scheduleTask(in: time, task)
    }

    func shutdownGracefully(queue: DispatchQueue, _ callback: @escaping @Sendable ((any Error)?) -> Void) {
        loop.shutdownGracefully(queue: queue, callback)
    }
}
