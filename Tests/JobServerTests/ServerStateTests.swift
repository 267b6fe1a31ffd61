import JobModel
import JobProtocol
import Logging
import Testing

@testable import JobServer

@Suite struct ServerStateTests {
    private let state = ServerState(
        version: "1", startedAt: Timestamp(milliseconds: 0), adminGroup: nil, logger: Logger(label: "test"))

    private var limits: JobLimits {
        var limits = JobLimits()
        limits.connections = 3
        limits.connectionsPerUser = 2
        return limits
    }

    private func refusal(_ uid: UInt32) -> ProtocolError? {
        do throws(ProtocolError) {
            _ = try state.enter(uid, within: limits)
            return nil
        } catch {
            return error
        }
    }

    @Test func connections_areBounded_inAllAndByUser() {
        #expect(refusal(1) == nil && refusal(1) == nil)
        let own = refusal(1)
        #expect(own?.code == -32003 && own?.data["kind"] == "busy" && own?.data["retryAfter"] == 1)
        #expect(own?.message.contains("You have 2") == true)
        #expect(refusal(2) == nil)
        #expect(refusal(3)?.message.contains("There are 3") == true)
        #expect(state.connectionCount() == 3, "one that was refused does not count")
        state.leave(1)
        #expect(state.connectionCount() == 2 && refusal(3) == nil)
        state.leave(1)
        #expect(refusal(1) == nil)
    }

    @Test func users_areForgotten_onceTheyHoldNothing_whereThereWereMany() throws {
        let budget = try state.enter(1, within: limits)
        state.leave(1)
        budget.add(1, as: .work)
        for user in UInt32(2)...3000 {
            _ = try state.enter(user, within: limits)
            state.leave(user)
        }
        #expect(state.users.count <= 1024)
        #expect(try state.enter(1, within: limits) === budget, "what it counts is not forgotten")
    }

    @Test func warnings_areOneASecond_ofEachUser() {
        for user in 1...2 { _ = refusal(UInt32(user)) }
        let start = ContinuousClock.now
        #expect(state.warns(of: 1, at: start) && state.warns(of: 2, at: start))
        for _ in 0..<5 { #expect(!state.warns(of: 1, at: start + .milliseconds(999))) }
        #expect(state.warns(of: 1, at: start + .seconds(1)))
        #expect(!state.warns(of: 1, at: start + .seconds(1)))
    }
}
