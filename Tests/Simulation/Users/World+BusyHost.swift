import JobCore
import JobModel

/// One owner whose jobs wait for a host that is the turn of another, who has all the slots that they may have.
///
/// Whoever has none of the host's connections has its next one, and gets to that only behind all of their other jobs. Until
/// then only those of the first owner can start that ask other hosts, and these are behind more than the memory has.
extension World {
    /// Under one seed in seventeen.
    static func hasBusyHosts(_ seed: UInt64) -> Bool { seed % 17 == 9 }

    func busyHost() {
        guard !isSettling else { return }
        scheduleAnyway(.busyHost, in: random.spread(5_000, 20_000))
        guard isRunning, oracle.isStarted, users.count > 1 else { return }
        let host = "y\(random.below(1000)).test"
        func job(_ letter: String, _ priority: Int, at host: String) -> JSON {
            [
                "source": ["type": "url", "url": .string("http://\(host)/\(letter)")],
                "queue": .string(Scenario.narrowQueue), "priority": JSON(priority),
            ]
        }
        func elsewhere(_ random: inout SeededGenerator) -> String { "x\(random.below(1000)).test" }
        // It takes a minute at least, in which the other owner's jobs are served that ask no other host twice.
        submit(1, by: 0) { _ in job("l", 1000, at: host) }
        submit(200, by: 1) { job("e", 1000, at: elsewhere(&$0)) }
        submit(1, by: 1) { _ in job("f", -1000, at: host) }
        // Of more than a window has at most it keeps half, and the rest stays in the store.
        submit(JobCore.windowSize + 50, by: 0) { _ in job("f", 500, at: host) }
        submit(50, by: 0) { job("e", 0, at: elsewhere(&$0)) }
    }
}
