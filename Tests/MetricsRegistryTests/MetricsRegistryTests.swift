import CoreMetrics
import JobModel
import Testing

@testable import MetricsRegistry

@Suite struct MetricsRegistryTests {
    /// The samples of each family.
    private func samples(_ registry: MetricsRegistry) -> [[JSON]] {
        registry.families.map { $0["samples"]?.array ?? [] }
    }

    @Test func families_tellWhatWasRecorded() {
        let registry = MetricsRegistry(descriptions: [
            "d_jobs": MetricDescription("Jobs."), "d_x": MetricDescription("X."),
        ])
        Counter(label: "d_jobs", dimensions: [("state", "b")], factory: registry).increment(by: 2)
        Counter(label: "d_jobs", dimensions: [("state", "a")], factory: registry).increment()
        Counter(label: "d_jobs", dimensions: [("state", "b")], factory: registry).increment(by: 3)
        Meter(label: "d_open", factory: registry).set(2.5)
        let timer = CoreMetrics.Timer(label: "d_run_seconds", factory: registry)
        timer.recordNanoseconds(1_500_000_000)
        timer.recordNanoseconds(500_000_000)
        let expected: JSON = [
            [
                "name": "d_jobs", "type": "counter", "help": "Jobs.",
                "samples": [["labels": ["state": "a"], "value": 1], ["labels": ["state": "b"], "value": 5]],
            ],
            ["name": "d_open", "type": "gauge", "samples": [["value": 2.5]]],
            ["name": "d_run_seconds", "type": "summary", "samples": [["count": 2, "sum": JSON(2.0)]]],
        ]
        #expect(JSON.array(registry.families) == expected)
    }

    @Test func labels_areTheSame_inWhateverOrderTheyCome() {
        let registry = MetricsRegistry()
        Counter(label: "c", dimensions: [("a", "1"), ("b", "2")], factory: registry).increment()
        Counter(label: "c", dimensions: [("b", "2"), ("a", "1")], factory: registry).increment()
        #expect(samples(registry).map(\.count) == [1])
    }

    @Test func counter_neverFalls() {
        let registry = MetricsRegistry()
        let counter = Counter(label: "c", factory: registry)
        counter.increment(by: 5)
        counter.increment(by: -3)
        counter.reset()
        counter.destroy()
        #expect(samples(registry) == [[["value": 5]]])
    }

    @Test func values_areExact_fromManyThreads() async {
        let registry = MetricsRegistry()
        await withTaskGroup(of: Void.self) { group in
            for _ in 0..<8 {
                group.addTask {
                    for _ in 0..<1000 {
                        Counter(label: "c", factory: registry).increment()
                        Meter(label: "m", factory: registry).increment(by: 0.5)
                        CoreMetrics.Timer(label: "r", factory: registry).recordNanoseconds(2_000_000_000)
                    }
                }
            }
        }
        #expect(
            samples(registry) == [
                [["value": 8000]], [["value": JSON(4000.0)]], [["count": 8000, "sum": JSON(16_000.0)]],
            ])
    }

    @Test func values_thatAreNoNumbers_areNull() {
        let registry = MetricsRegistry()
        Meter(label: "m", factory: registry).set(Double.infinity)
        #expect(samples(registry) == [[["value": nil]]])
    }
}
