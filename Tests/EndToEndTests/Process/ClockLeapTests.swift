import Foundation
import Glibc
import JobModel
import TestSupport
import Testing

/// A wall clock that is set while the daemon runs, by years and back.
@Suite(.enabled(if: Interposer.obstacle == nil, Comment(rawValue: Interposer.obstacle ?? "")))
struct ClockLeapTests {
    private static let year: Int64 = 366 * 86_400

    @Test func schedules_submitOnce_whenTheClockLeapsByAYear_andBack() async throws {
        try await Household.with { household in
            let clock = try await WallClock(in: household.directory)
            let (daemon, wire) = try await household.serve(environment: clock.environment)
            _ = try await wire.call("job.watch", ["tag": "tick"])
            let spec: JSON = ["source": ["type": "value", "value": "{{schedule/time}}"], "tags": ["tick"]]
            // Half a month away, so that the real clock does not pass a time of it.
            let today = Timestamp(milliseconds: Int64(Date().timeIntervalSince1970) * 1000).description
            let day = try #require(Int(today.dropFirst(8).prefix(2)).map { ($0 + 13) % 28 + 1 })
            let monthly = try await wire.call(
                "schedule.set", ["schedule": "monthly", "calendar": .string("0 0 \(day) * *"), "spec": spec])
            let untouched = try await wire.submit(.timer(3600))
            let tomorrow = Timestamp(milliseconds: Int64(Date().timeIntervalSince1970 + 86_400) * 1000)
            let delayed = try await wire.submit(.value("delayed", ["notBefore": .string(tomorrow.description)]))
            try await wire.eventually { $0["jobs"]?["running"] == 1 }
            #expect(monthly["submitted"] == 0)

            try clock.leap(to: Self.year)
            let first = try await wire.next("a job of the schedule") { $0.state == "succeeded" }
            #expect(first.job.map { $0 > delayed } == true)
            // Starts at a time of the wall clock follow the wall clock, and durations follow the steady clock.
            #expect(try await wire.wait(delayed)["result"] == "delayed")
            #expect(try await wire.call("job.get", .job(untouched))["state"] == "running")
            let after = try await wire.call("schedule.get", ["schedule": "monthly"])
            #expect(after["submitted"] == 1, "\(after)")
            let (next, before) = (after["next"]?.string ?? "", monthly["next"]?.string ?? "")
            #expect(next.prefix(4) > before.prefix(4), "\(after)")

            try clock.leap(to: 0)
            // The next job has its time from a daemon that has noticed.
            try await wire.eventually { _ in true }
            #expect(try await wire.succeed(.value(1)) == 1)
            let back = try await wire.call("schedule.get", ["schedule": "monthly"])
            #expect(back["submitted"] == 1 && back["next"]?.string == next, "\(back)")
            #expect(try await wire.call("job.get", .job(untouched))["state"] == "running")
            // To and fro.
            for round in 1...20 as ClosedRange<Int64> { try clock.leap(to: round % 2 * Self.year) }
            #expect(try await wire.succeed(.value(2)) == 2)
            #expect(try await wire.call("schedule.get", ["schedule": "monthly"])["submitted"] == 1)
            try await daemon.stop()
        }
    }
}
