import HeapModule
import JobModel

/// A timer of the core, by what happens when it fires.
enum CoreTimer: Hashable, Comparable {
    /// A scheduled job is due.
    case due
    /// A job's deadline passes.
    case deadline
    /// Old finished jobs are purged.
    case retention
    /// A storage that failed is tried again.
    case storage
    /// What could not be read of jobs is read again.
    case readAgain
    /// What could not be read or stored of schedules is tried again.
    case schedules
    /// A schedule is due.
    case schedule(ScheduleKey)
    /// The back-off from a host ends.
    case host(String)
    /// Subscribers with this interval, in milliseconds, get the progress of jobs that made some.
    case progress(Int)
    /// A wait times out.
    case wait(RequestID)
    /// The list of this job takes too long.
    case list(JobID)
    /// The source `timer` of this job ends, or its attempt takes too long.
    case timer(JobID)
}

/// Timers on one clock, in the order of their times.
struct TimerQueue {
    private struct Entry: Comparable {
        let time: Int64
        /// Orders timers of the same time as they were set.
        let number: Int64
        let timer: CoreTimer
        static func < (left: Entry, right: Entry) -> Bool { (left.time, left.number) < (right.time, right.number) }
        static func == (left: Entry, right: Entry) -> Bool { left.number == right.number }
    }

    private var times: [CoreTimer: (time: Int64, number: Int64)] = [:]
    private var heap = Heap<Entry>()
    private var lastNumber: Int64 = 0

    var count: Int { times.count }

    /// When the first of them fires.
    var next: Int64? { heap.min?.time }

    func isSet(_ timer: CoreTimer) -> Bool { times[timer] != nil }

    /// Sets `timer`, instead of what it was set to before.
    mutating func set(_ timer: CoreTimer, at time: Int64) {
        lastNumber += 1
        times[timer] = (time, lastNumber)
        heap.insert(Entry(time: time, number: lastNumber, timer: timer))
        dropStale()
    }

    /// Sets `timer` unless it fires earlier already.
    mutating func setEarlier(_ timer: CoreTimer, at time: Int64) {
        if let present = times[timer], present.time <= time { return }
        set(timer, at: time)
    }

    /// Sets `timer` unless it fires later already.
    mutating func setLater(_ timer: CoreTimer, at time: Int64) {
        if let present = times[timer], present.time >= time { return }
        set(timer, at: time)
    }

    mutating func clear(_ timer: CoreTimer) {
        guard times.removeValue(forKey: timer) != nil else { return }
        dropStale()
    }

    /// The next timer whose time has come; it is not set any more.
    mutating func popDue(at now: Int64) -> CoreTimer? {
        guard let first = heap.min, first.time <= now else { return nil }
        heap.removeMin()
        times[first.timer] = nil
        dropStale()
        return first.timer
    }

    /// Removes outdated entries from the top, and keeps the heap at most twice as large as the number of timers.
    private mutating func dropStale() {
        while let first = heap.min, times[first.timer]?.number != first.number { heap.removeMin() }
        if heap.count > 2 * times.count + 64 {
            heap = Heap(heap.unordered.filter { times[$0.timer]?.number == $0.number })
        }
    }
}
