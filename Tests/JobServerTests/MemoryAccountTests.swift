import Glibc
import JobCore
import JobModel
import JobProtocol
import NIOCore
import Synchronization
import TestSupport
import Testing

@testable import JobServer

@Suite struct MemoryAccountTests {
    private func outbox(_ account: MemoryAccount, limit: Int = 1 << 20) -> (Outbox, closed: () -> Bool) {
        let closed = Mutex(false)
        let outbox = Outbox(limit: limit, account: account) { closed.withLock { $0 = true } }
        return (outbox, { closed.withLock { $0 } })
    }

    private func bytes(_ count: Int) -> [UInt8] { [UInt8](repeating: 0x78, count: count - 1) }

    @Test func account_admits_upToItsLimit() {
        let account = MemoryAccount(limit: 100)
        #expect(account.admits(60) && !account.admits(41) && account.admits(40) && account.isFull)
        account.release(100)
        #expect(account.size == 0 && account.admits(1000), "what is alone has its turn, however much it is")
    }

    @Test func accounts_haveEqualParts_whereAllTogetherHaveTooMuch() {
        let total = MemoryTotal(limit: 100)
        let first = MemoryAccount(limit: 80, of: 1, total: total)
        var second: MemoryAccount? = MemoryAccount(limit: 80, of: 2, total: total)
        #expect(first.admits(80) && !first.admits(1), "its own bound")
        #expect(second?.admits(20) == true)
        #expect(first.isFull && second?.isFull == false)
        #expect(second?.admits(30) == true && second?.admits(1) == false, "up to half, although the other has more")
        first.release(50)
        #expect(first.admits(30) && second?.admits(1) == false && !first.admits(1))
        // Who is gone needs no part.
        second?.release(50)
        second = nil
        #expect(first.admits(20) && !first.admits(1))
    }

    @Test func whoIsConnected_isTold_asUsersComeAndGo() {
        let total = MemoryTotal(limit: 100)
        let told = Mutex<[ConnectedUsers]>([])
        total.onChange { users in told.withLock { $0.append(users) } }
        var first: MemoryAccount? = MemoryAccount(limit: 80, of: 1, total: total)
        var again: MemoryAccount? = MemoryAccount(limit: 80, of: 1, total: total)
        var second: MemoryAccount? = MemoryAccount(limit: 80, of: 2, total: total)
        var third: MemoryAccount? = MemoryAccount(limit: 80, of: 3, total: total)
        #expect(first != nil && again != nil && second != nil && third != nil)
        #expect(told.withLock(\.self) == [.none, .one(1), .several], "with each change, once")
        third = nil
        first = nil
        #expect(told.withLock(\.count) == 3)
        again = nil
        second = nil
        #expect(told.withLock { $0[3...] } == [.one(2), .none])
    }

    @Test func others_areThere_forWhoLeftAsWell() {
        #expect(!ConnectedUsers.none.areOthers(than: 1))
        #expect(!ConnectedUsers.one(1).areOthers(than: 1))
        #expect(ConnectedUsers.one(1).areOthers(than: 2), "what the second left behind goes on")
        #expect(ConnectedUsers.several.areOthers(than: 1))
    }

    @Test func charge_grows_untilTheUserIsFarPastTheBound() {
        let account = MemoryAccount(limit: 100)
        #expect(account.admits(50))
        let charge = MemoryCharge(of: 50, in: account)
        #expect(charge.grow(by: 60) && account.size == 110)
        #expect(!charge.grow(by: 60) && account.size == 170)
        withExtendedLifetime(charge) {}
    }

    @Test func memory_isTheLeastOfTheMachinesAndItsGroups() throws {
        let directory = try TemporaryDirectory()
        let own = try directory.write("1:memory:/x\n0::/system.slice/deferd.service\n", to: "own")
        func available() -> Int { MemoryTotal.available(groups: directory.path, own: own) }
        let machine = available()
        #expect(machine > 1 << 24)
        let slice = directory.path + "/system.slice"
        #expect(mkdir(slice, 0o700) == 0 && mkdir(slice + "/deferd.service", 0o700) == 0)
        _ = try directory.write("max\n", to: "system.slice/deferd.service/memory.max")
        #expect(available() == machine)
        _ = try directory.write("8000000\n", to: "system.slice/memory.high")
        #expect(available() == 8_000_000)
        _ = try directory.write("4096000\n", to: "system.slice/deferd.service/memory.max")
        #expect(available() == 4_096_000)
    }

    @Test func unfinishedLines_leaveHalf_forOthers() {
        let account = MemoryAccount(limit: 100)
        #expect(account.admits(unfinished: 50) && !account.admits(unfinished: 1) && account.admits(50))
        account.release(50)
        account.complete(unfinished: 20)
        #expect(account.size == 50 && account.admits(unfinished: 20))
        account.complete(unfinished: 50, isDropped: true)
        #expect(account.size == 20)
    }

    @Test func unread_counts_untilTheSocketHasIt() async throws {
        let account = MemoryAccount(limit: 1000)
        let (outbox, closed) = outbox(account)
        outbox.send(answer: bytes(600))
        #expect(account.size == 600 && outbox.backlog.size == 600)
        var sending = await outbox.next()
        #expect(sending?.bytes.readableBytes == 600)
        #expect(account.size == 600 && outbox.backlog.size == 600 && outbox.backlog.sent == 0)
        sending = nil
        #expect(account.size == 0 && outbox.backlog.size == 0 && outbox.backlog.sent == 1)
        outbox.send(answer: bytes(600))
        outbox.close()
        #expect(account.size == 0 && !closed())
    }

    @Test func notification_closesWhatHasTheMostUnread_whenThereIsNoRoom() {
        let account = MemoryAccount(limit: 10_000)
        let (reader, readerClosed) = outbox(account)
        let (idle, idleClosed) = outbox(account)
        idle.send(answer: bytes(9900))
        reader.send(answer: bytes(50))
        #expect(!idleClosed())
        for _ in 0..<3 { reader.send(.state(1), watch: "w1") }
        #expect(idleClosed() && !readerClosed())
        #expect(account.size == reader.backlog.size)
    }

    @Test func answers_closeWhatHasTheMostUnread_pastTheBoundAndHalfAgain() {
        let account = MemoryAccount(limit: 10_000)
        let (reader, readerClosed) = outbox(account)
        let (idle, idleClosed) = outbox(account)
        idle.send(answer: bytes(10_000))
        reader.send(answer: bytes(4_900))
        #expect(account.isFull && !idleClosed())
        reader.send(answer: bytes(100))
        #expect(idleClosed() && !readerClosed() && account.size == 5_000)
    }

    /// A connection that is closed gives back what its socket has only when it has ended.
    @Test func answers_closeNoMore_thanMakesRoom() async throws {
        let account = MemoryAccount(limit: 1000)
        let (reader, isReaderClosed) = outbox(account)
        let (idle, isIdleClosed) = outbox(account)
        idle.send(answer: bytes(1300))
        let sending = try #require(await idle.next())
        reader.send(answer: bytes(200))
        #expect(isIdleClosed() && !isReaderClosed())
        // It has not ended yet, and is not closed once more in the place of another.
        #expect(account.size == 1500)
        reader.send(answer: bytes(10))
        #expect(!isReaderClosed())
        withExtendedLifetime(sending) {}
    }

    @Test func connection_isClosed_thatReadsNothing_whileOthersAreRefused() async {
        let clock = Mutex(ContinuousClock.now)
        let account = MemoryAccount(limit: 500_000) { clock.withLock { $0 } }
        func refuse(after seconds: Double) {
            clock.withLock { $0 += .seconds(seconds) }
            // However many there are, none of them makes time pass.
            for _ in 0..<100 { #expect(account.refusal().code == ProtocolError.Code.busy.rawValue) }
        }
        let (idle, idleClosed) = outbox(account)
        let (slow, slowClosed) = outbox(account)
        let (late, lateClosed) = outbox(account)
        idle.send(answer: bytes(100_000))
        slow.send(answer: bytes(400_000))
        refuse(after: 10)
        refuse(after: 4.9)
        #expect(!idleClosed() && !slowClosed())
        _ = await slow.next()
        slow.send(answer: bytes(300_000))
        late.send(answer: bytes(200_000))
        refuse(after: 0.2)
        #expect(idleClosed() && !slowClosed() && !lateClosed())
        refuse(after: 6)
        #expect(slowClosed() && !lateClosed(), "one at a time, the largest first")
        refuse(after: 0.1)
        #expect(lateClosed())
    }

    @Test func connection_isNotClosed_thatReadsALongLineSlowly() async {
        let clock = Mutex(ContinuousClock.now)
        let account = MemoryAccount(limit: 2_000_000) { clock.withLock { $0 } }
        let (slow, slowClosed) = outbox(account, limit: 4 << 20)
        slow.send(answer: bytes(2_000_000))
        for _ in 0..<5 {
            // The socket takes a part.
            _ = await slow.next()
            clock.withLock { $0 += .milliseconds(4900) }
            _ = account.refusal()
        }
        #expect(!slowClosed())
        clock.withLock { $0 += .seconds(5) }
        _ = account.refusal()
        #expect(slowClosed(), "it has stopped to read")
    }

    @Test func connection_isClosed_thatReadsNothingOfItsLastAnswers() async {
        let account = MemoryAccount(limit: 300_000)
        let (idle, idleClosed) = outbox(account)
        idle.send(answer: bytes(200_000))
        var sending = await idle.next()
        // Its client has shut the writing side.
        idle.finish()
        #expect(account.size == 200_000 && sending != nil && !idleClosed())
        idle.overflow()
        #expect(idleClosed())
        // As the socket is closed now.
        sending = nil
        await idle.flush()
        #expect(account.size == 0)
    }

    @Test func batch_countsItsAnswers_untilItIsSent() {
        let account = MemoryAccount(limit: 10_000)
        let (outbox, _) = outbox(account)
        func batch() -> Replies {
            account.charge(Replies.least(calls: 2, ids: 0))
            return Replies(calls: 2, isBatch: true, outbox: outbox, account: account) {}
        }
        var replies: Replies? = batch()
        replies?.succeed(1, .string(String(repeating: "x", count: 500)))
        #expect(account.size > 500 && outbox.backlog.size == 0)
        replies?.succeed(2, .null)
        replies = nil
        #expect(account.size == outbox.backlog.size && account.size > 500)
        replies = batch()
        replies?.succeed(1, .string(String(repeating: "x", count: 500)))
        replies = nil
        #expect(account.size == outbox.backlog.size, "also where it is never complete")
    }
}

extension MemoryAccount {
    fileprivate var size: Int { used.load(ordering: .relaxed) }
}
