/// How fast a program did its work, and what it cost.
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
