import JobModel
import Testing

/// A daemon that has nothing to do sleeps.
@Suite struct IdleTests {
    /// Whether libdispatch wants to be woken at some time of the monotonic clock: by its timers on that clock, which
    /// NIO sets in another way.
    private func awaitsTime(_ daemon: Daemon) throws -> Bool {
        let directory = "/proc/\(daemon.pid)/fdinfo"
        return Files.names(in: directory).contains { name in
            guard let bytes = try? Files.bytes(directory + "/" + name) else { return false }
            let lines = String(decoding: bytes, as: UTF8.self).split(separator: "\n")
            return lines.contains("clockid: 1") && lines.contains("settime flags: 01")
                && !lines.contains("it_value: (0, 0)")
        }
    }

    @Test func startedAgain_withWhatIsFarOff_sleeps() async throws {
        try await Household.with { household async throws in
            let (first, wire) = try await household.serve()
            _ = try await wire.submit(.value(1, ["delay": 10_000_000]))
            try await first.stop()
            let daemon = try await household.start()
            // The work of a start ends eventually; recurring work does not.
            let deadline = ContinuousClock.now + .seconds(Patience.seconds)
            var quiet = 0
            while quiet < 20, ContinuousClock.now < deadline {
                quiet = try awaitsTime(daemon) ? 0 : quiet + 1
                try await Task.sleep(for: .milliseconds(100))
            }
            #expect(quiet == 20, "it is woken again and again")
            try await daemon.stop()
        }
    }
}
