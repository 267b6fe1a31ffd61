import JobModel
import JobProtocol
import Testing

@testable import JobServer

@Suite struct ServerStateTests {
    private func state(connections: Int, perUser: Int) -> ServerState {
        var limits = JobLimits()
        limits.connections = connections
        limits.connectionsPerUser = perUser
        return ServerState(
            identity: ServerIdentity(version: "1", pid: 1, startedAt: Timestamp(milliseconds: 0)), limits: limits)
    }

    @Test func connections_areBounded_inAllAndByUser() {
        let state = state(connections: 3, perUser: 2)
        #expect(state.enter(1) == nil && state.enter(1) == nil)
        let own = state.enter(1)?.error
        #expect(own?.code == -32003 && own?.data["kind"] == "busy" && own?.data["retryAfter"] == 1)
        #expect(own?.message.contains("You have 2") == true)
        #expect(state.enter(2) == nil)
        #expect(state.enter(3)?.error.message.contains("There are 3") == true)
        #expect(state.connectionCount == 3, "one that was refused does not count")
        state.leave(1)
        #expect(state.connectionCount == 2 && state.enter(3) == nil)
        state.leave(1)
        #expect(state.enter(1) == nil)
    }

    @Test func warnings_areOneASecond_ofEachUser() {
        let state = state(connections: 1, perUser: 1)
        let start = ContinuousClock.now
        #expect(state.warns(of: 1, at: start) == 0 && state.warns(of: 2, at: start) == 0)
        for _ in 0..<5 { #expect(state.warns(of: 1, at: start + .milliseconds(999)) == nil) }
        #expect(state.warns(of: 1, at: start + .seconds(1)) == 5)
        #expect(state.warns(of: 1, at: start + .seconds(1)) == nil)
        for user in 10..<5000 { _ = state.warns(of: UInt32(user), at: start + .seconds(3)) }
        #expect(state.warns(of: 1, at: start + .seconds(3)) != nil)
    }
}
