import Glibc
import Logging
import Synchronization
import Testing

@testable import Systemd

@Suite struct WatchdogTests {
    @Test func watchdog_isOff_whenTheManagerSetNone() async {
        await #expect(processExitsWith: .success) {
            unsetenv("WATCHDOG_USEC")
            unsetenv("WATCHDOG_PID")
            let unset = try Watchdog()
            #expect(unset == nil)
            setenv("WATCHDOG_USEC", "2000000", 1)
            setenv("WATCHDOG_PID", "1", 1)
            let foreign = try Watchdog()
            #expect(foreign == nil, "it is set for another process")
        }
    }

    @Test func watchdog_hasTheManagersInterval_whenSetForThisProcess() async {
        await #expect(processExitsWith: .success) {
            setenv("WATCHDOG_USEC", "2500000", 1)
            setenv("WATCHDOG_PID", String(getpid()), 1)
            let interval = try Watchdog()?.interval
            #expect(interval == .milliseconds(2500))
        }
    }

    @Test func watchdog_throws_whenItsVariableIsNoNumber() async {
        await #expect(processExitsWith: .success) {
            setenv("WATCHDOG_USEC", "soon", 1)
            let error = #expect(throws: SystemdError.self) { _ = try Watchdog() }
            #expect(error?.message.contains("WATCHDOG_USEC") == true)
        }
    }

    @Test func watchdog_tellsTheManager_whenTheProbePasses() async {
        await #expect(processExitsWith: .success) {
            let socket = try NotificationSocket()
            setenv("WATCHDOG_USEC", "3600000000", 1)
            unsetenv("WATCHDOG_PID")
            let watchdog = try #require(try Watchdog())
            let rounds = Rounds(stopAfter: 2)
            await rounds.run(watchdog) { _ = rounds.next() }
            #expect(try socket.receive().assignments == ["WATCHDOG=1"])
        }
    }

    @Test func watchdog_isFedAtHalfItsInterval_whenTheProbePasses() async {
        let rounds = Rounds(stopAfter: 4)
        await rounds.run(rounds.watchdog(interval: .seconds(8))) {
            _ = rounds.next()
        }
        #expect(rounds.fed == [.seconds(0), .seconds(4), .seconds(8)])
    }

    @Test func watchdog_keepsItsPace_whenTheProbeTakesTime() async {
        let rounds = Rounds(stopAfter: 4)
        await rounds.run(rounds.watchdog(interval: .seconds(8))) {
            _ = rounds.next()
            rounds.clock.advance(by: .seconds(3))
        }
        #expect(rounds.fed == [.seconds(3), .seconds(7), .seconds(11)])
    }

    @Test func watchdog_isNotFed_whenTheProbePassesTooLate() async {
        let rounds = Rounds(stopAfter: 3)
        await rounds.run(rounds.watchdog(interval: .seconds(8))) {
            if rounds.next() == 0 { rounds.clock.advance(by: .seconds(9)) }
        }
        #expect(rounds.fed == [.seconds(9)])
    }

    @Test func watchdog_ends_whenItsTaskIsCancelledAsleep() async {
        let (fed, feed) = AsyncStream.makeStream(of: Void.self)
        let watchdog = Watchdog(interval: .seconds(3600)) { () throws(SystemdError) in feed.yield() }
        let hasEnded = await withTaskGroup(of: Void.self) { group in
            group.addTask { await watchdog.run(logger: .silent) {} }
            var feeds = fed.makeAsyncIterator()
            await feeds.next()
            group.cancelAll()
            return await group.next() != nil
        }
        #expect(hasEnded)
    }
}

/// Counts the rounds of a watchdog, notes when it was fed and cancels its task in the last round.
private final class Rounds: Sendable {
    let clock = JumpingClock()
    private let stopAfter: Int
    private let state = Mutex((round: 0, fed: [Duration]()))

    init(stopAfter: Int) {
        self.stopAfter = stopAfter
    }

    var fed: [Duration] { state.withLock { $0.fed } }

    func watchdog(interval: Duration) -> Watchdog {
        Watchdog(
            interval: interval,
            feed: { [self] () throws(SystemdError) in state.withLock { $0.fed.append(clock.now.offset) } })
    }

    /// Runs the watchdog in a task of its own: the last round cancels that, not the test.
    func run(_ watchdog: Watchdog, probe: @escaping @Sendable () async -> Void) async {
        await withTaskGroup(of: Void.self) { [clock] group in
            group.addTask { await watchdog.run(clock: clock, logger: .silent, probe: probe) }
        }
    }

    /// The number of this round, from 0.
    func next() -> Int {
        let round = state.withLock { state in
            defer { state.round += 1 }
            return state.round
        }
        if round + 1 == stopAfter { withUnsafeCurrentTask { $0?.cancel() } }
        return round
    }
}

/// A clock on which a sleep takes no time: it jumps to the end of it.
private final class JumpingClock: Clock, Sendable {
    struct Instant: InstantProtocol {
        var offset: Duration

        func advanced(by duration: Duration) -> Instant { Instant(offset: offset + duration) }
        func duration(to other: Instant) -> Duration { other.offset - offset }
        static func < (left: Instant, right: Instant) -> Bool { left.offset < right.offset }
    }

    private let time = Mutex(Instant(offset: .zero))

    var now: Instant { time.withLock { $0 } }
    var minimumResolution: Duration { .zero }

    func advance(by duration: Duration) {
        time.withLock { $0 = $0.advanced(by: duration) }
    }

    func sleep(until deadline: Instant, tolerance: Duration?) async throws {
        try Task.checkCancellation()
        time.withLock { $0 = max($0, deadline) }
    }
}

extension Logger {
    fileprivate static let silent = Logger(label: "test") { _ in SwiftLogNoOpLogHandler() }
}
