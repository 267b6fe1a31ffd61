/// Seconds that have passed.
struct Stopwatch {
    private let start = ContinuousClock.now
    var seconds: Double { (ContinuousClock.now - start) / .seconds(1) }
}
