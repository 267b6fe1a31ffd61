import Glibc
import Testing

@testable import JobCore
@testable import JobEngine
@testable import JobServer

@Suite struct PeerTests {
    private func pair() throws -> (Int32, Int32) {
        var ends: [Int32] = [-1, -1]
        try #require(socketpair(AF_UNIX, Int32(SOCK_STREAM.rawValue), 0, &ends) == 0)
        return (ends[0], ends[1])
    }

    @Test func peer_isThisProcess_atTheEndsOfItsOwnSocket() throws {
        let (one, other) = try pair()
        defer {
            close(one)
            close(other)
        }
        for end in [one, other] {
            let peer = try #require(Peer(socket: end))
            #expect(peer.uid == geteuid())
            #expect(peer.groups.contains(getegid()))
            let count = getgroups(0, nil)
            var groups = [gid_t](repeating: 0, count: Int(count))
            #expect(getgroups(count, &groups) == count)
            #expect(peer.groups.isSuperset(of: groups))
        }
    }

    @Test func peer_ofTheDaemonsOwnUser_isAnAdministrator() throws {
        let (one, other) = try pair()
        defer {
            close(one)
            close(other)
        }
        let peer = try #require(Peer(socket: one))
        for group in [nil, getegid(), 4_000_000_000] as [UInt32?] {
            #expect(peer.caller(adminGroup: group) == Caller(uid: geteuid(), isAdmin: true))
        }
    }

    @Test func peer_isNil_whereTheKernelGivesNone() throws {
        var ends: [Int32] = [-1, -1]
        try #require(pipe(&ends) == 0)
        defer { for end in ends { close(end) } }
        #expect(Peer(socket: ends[0]) == nil)
        #expect(Peer(socket: -1) == nil)
    }
}
