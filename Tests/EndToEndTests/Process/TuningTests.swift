import JobModel
import TestOrigin
import Testing

/// The daemon works without behaviour that the platform does not guarantee.
@Suite struct TuningTests {
    @Test(arguments: ["off", "on"])
    func jobs_runAndAreKept_withAndWithoutTuning(_ tuning: String) async throws {
        try await TestOrigin.run { origin in
            origin["/a"] = OriginResource(text: "text", type: "text/plain")
            try await Daemon.run(environment: ["DEFERD_TUNING": tuning]) { _, wire in
                let url: JSON = ["type": "url", "url": .string(origin.url("/a"))]
                let each: JSON = [
                    "source": ["type": "each", "in": .array((0..<50).map { JSON($0) }), "job": ["source": url]],
                    "then": [["then": ["return": "{{input/49/value/body}}"]]],
                ]
                #expect(try await wire.succeed(each) == "text")
                let timer = try await wire.submit(["source": ["type": "timer", "seconds": 1000]])
                #expect(timer == 52)
            }
        }
    }
}
