import Glibc
import Dispatch
import HeapModule
import JobModel

/// What the engine wants to be woken for.
enum Alarm: Hashable {
    /// A scheduled job is due.
    case due
    /// A job's deadline passes.
    case deadline
    /// A host that asked to be left alone may be asked again.
    case host(String)
    /// Watchers with this interval, in milliseconds, get the progress of what changed.
    case progress(Int)
    /// A wait runs out of time.
    case wait(Int)
    /// The list of this job takes too long.
    case list(JobID)
    /// Old finished jobs are purged.
    case retention
    /// Those who observe the daemon's status are told.
    case status
    /// A storage that failed is tried again.
    case storage
}

/// The engine's alarms, all on one timer that is armed for the earliest, and not at all while there are none.
final class Alarms {
    enum Clock {
        /// Follows the time of day, also when that is set.
        case wall
        /// Runs evenly, whatever the time of day does.
        case monotonic
    }

    private struct Entry: Comparable {
        let time: UInt64
        let alarm: Alarm
        static func < (left: Entry, right: Entry) -> Bool { left.time < right.time }
        static func == (left: Entry, right: Entry) -> Bool { left.time == right.time && left.alarm == right.alarm }
    }

    private let clock: Clock
    private let timer: any DispatchSourceTimer
    private var times: [Alarm: UInt64] = [:]
    private var heap = Heap<Entry>()
    private var armed: UInt64?

    /// `fired` is called on `queue`.
    init(_ clock: Clock, on queue: DispatchQueue, fired: @escaping @Sendable () -> Void) {
        self.clock = clock
        timer = DispatchSource.makeTimerSource(queue: queue)
        timer.setEventHandler(handler: fired)
        timer.activate()
    }

    deinit { timer.cancel() }

    /// Sets `alarm` to go off in `seconds`, instead of when it was set to before.
    func set(_ alarm: Alarm, in seconds: Double) {
        let time = now + UInt64(max(0, min(seconds, 3e8)) * 1e9)
        times[alarm] = time
        heap.insert(Entry(time: time, alarm: alarm))
        arm()
    }

    /// Sets `alarm` unless it goes off earlier already.
    func setEarlier(_ alarm: Alarm, in seconds: Double) {
        if let time = times[alarm], time <= now + UInt64(max(0, min(seconds, 3e8)) * 1e9) { return }
        set(alarm, in: seconds)
    }

    func isSet(_ alarm: Alarm) -> Bool { times[alarm] != nil }

    func clear(_ alarm: Alarm) {
        times[alarm] = nil
    }

    /// Takes out the alarms whose time has come.
    func takeDue() -> [Alarm] {
        armed = nil
        let now = now
        var due: [Alarm] = []
        while let first = heap.min, first.time <= now || times[first.alarm] != first.time {
            heap.removeMin()
            guard times[first.alarm] == first.time else { continue }
            times[first.alarm] = nil
            due.append(first.alarm)
        }
        arm()
        return due
    }

    private func arm() {
        while let first = heap.min, times[first.alarm] != first.time { heap.removeMin() }
        guard let first = heap.min else {
            if armed != nil { timer.schedule(wallDeadline: .distantFuture) }
            armed = nil
            return
        }
        guard armed != first.time else { return }
        armed = first.time
        let wait = first.time > now ? Int(first.time - now) : 0
        switch clock {
        case .wall: timer.schedule(wallDeadline: .now() + .nanoseconds(wait), leeway: .milliseconds(1))
        case .monotonic: timer.schedule(deadline: .now() + .nanoseconds(wait), leeway: .milliseconds(1))
        }
    }

    private var now: UInt64 {
        var time = timespec()
        clock_gettime(clock == .wall ? CLOCK_REALTIME : CLOCK_MONOTONIC, &time)
        return UInt64(time.tv_sec) * 1_000_000_000 + UInt64(time.tv_nsec)
    }
}
