import JobModel
import JobProtocol
import MetricsRegistry
import Testing

@testable import JobServer

@Suite struct ServerStateTests {
    private func state(connections: Int, perUser: Int) -> ServerState {
        var limits = JobLimits()
        limits.connections = connections
        limits.connectionsPerUser = perUser
        return ServerState(
            version: "1", startedAt: Timestamp(milliseconds: 0), limits: limits, adminGroup: nil,
            metrics: MetricsRegistry())
    }

    private func refusal(_ state: ServerState, _ uid: UInt32) -> ProtocolError? {
        do throws(ProtocolError) {
            _ = try state.enter(uid)
            return nil
        } catch {
            return error
        }
    }

    @Test func connections_areBounded_inAllAndByUser() {
        let state = state(connections: 3, perUser: 2)
        #expect(refusal(state, 1) == nil && refusal(state, 1) == nil)
        let own = refusal(state, 1)
        #expect(own?.code == -32003 && own?.data["kind"] == "busy" && own?.data["retryAfter"] == 1)
        #expect(own?.message.contains("You have 2") == true)
        #expect(refusal(state, 2) == nil)
        #expect(refusal(state, 3)?.message.contains("There are 3") == true)
        #expect(state.connectionCount == 3, "one that was refused does not count")
        state.leave(1)
        #expect(state.connectionCount == 2 && refusal(state, 3) == nil)
        state.leave(1)
        #expect(refusal(state, 1) == nil)
    }

    @Test func user_isForgotten_onceTheyHoldNothing() throws {
        let state = state(connections: 10, perUser: 1)
        let budget = try state.enter(1)
        budget.add(1, as: .work)
        state.leave(1)
        #expect(try state.enter(1) === budget, "what it counts is not forgotten")
        budget.add(-1, as: .work)
        state.leave(1)
        #expect(try state.enter(1) !== budget)
    }

    @Test func warnings_areOneASecond_ofEachUser() {
        let state = state(connections: 1, perUser: 1)
        // One that is refused counts too.
        for user in 1...2 { _ = refusal(state, UInt32(user)) }
        let start = ContinuousClock.now
        #expect(state.warns(of: 1, at: start) && state.warns(of: 2, at: start))
        for _ in 0..<5 { #expect(!state.warns(of: 1, at: start + .milliseconds(999))) }
        #expect(state.warns(of: 1, at: start + .seconds(1)))
        #expect(!state.warns(of: 1, at: start + .seconds(1)))
    }
}
