import Glibc

/// Seconds that have passed on a clock of the system.
struct Stopwatch {
    private let clock: clockid_t
    private let start: Double

    /// Wall time.
    init() { self.init(clock: CLOCK_MONOTONIC) }

    /// CPU time of the calling thread.
    static var thread: Stopwatch { Stopwatch(clock: CLOCK_THREAD_CPUTIME_ID) }

    private init(clock: clockid_t) {
        self.clock = clock
        start = Self.now(clock)
    }

    var seconds: Double { Self.now(clock) - start }

    private static func now(_ clock: clockid_t) -> Double {
        var time = timespec()
        clock_gettime(clock, &time)
        return Double(time.tv_sec) + Double(time.tv_nsec) / 1e9
    }
}

/// The speed of a program's work, and its cost.
struct Throughput {
    /// Jobs a second.
    let rate: Double
    /// Microseconds of CPU for each job.
    let cpu: Double

    init(jobs: Int, seconds: Double, cpu: Double) {
        rate = Double(jobs) / seconds
        self.cpu = cpu / Double(jobs) * 1e6
    }
}
