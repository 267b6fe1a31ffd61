import JobProtocol
import NIOCore

/// The turns of one user, over all connections, so that what one user asks for does not make others wait for long.
///
/// Calls that are carried out at once are bounded, the more so while other users are there. Then submissions on their way to
/// the disk are bounded too, by their size, as the store writes in the order they come. Long lines are read one at a time.
///
/// A call has its turn until its answer is handed to the outbox, whether the client reads that or not. So no call may have it
/// that waits for what the daemon does not do by itself:
/// - `job.wait`, `job.watch` and `schedule.run` have it until the wait, the watch or the job has begun, and a wait for several
///   jobs, or for a large one, again for its answer;
/// - `server.backup`, which takes minutes, has none: only administrators ask for it, one at a time;
/// - those that may wait for files, ``fileCalls``, have turns of their own: where a file system hangs they wait for each other,
///   and no other call does.
final class Turns: Sendable {
    /// Calls that are carried out at once: what each of them reads is in memory before its answer is counted. The second
    /// bound holds while other users are there: with 2, two threads that read long lists keep two processors busy, and in
    /// `soak floods` another's `job.get` takes 5 to 9 times as long instead of 1.3 to 1.9 times.
    static let mostCalls = 8
    static let mostSharedCalls = 1
    /// What is handed to the store together, and what is on its way there, while other users are there: as much as takes about
    /// as long as an fsync. With twice and four times as much another's submission takes twice as long and more.
    static let submissionGroup = 16
    static let mostSubmissions = 32
    /// Bytes of a submission that count as one more: with 16 KiB submissions of 100 KB make another's take 3 times as long
    /// instead of 1.4 times.
    private static let submissionBytes = 4 << 10

    /// The longest pause after a call: where it took longer that was not for its own work.
    private static let longestPause = TimeAmount.milliseconds(100)

    /// To begin and to end a connection takes an event loop about 150 microseconds, and what it asks for before it goes more.
    private static let pauseAfterConnecting = TimeAmount.milliseconds(2)

    let calls: Gate
    /// `job.cancel`, `job.retry` and `job.remove` remove what an unfinished download has kept, `job.result` and
    /// `schedule.set` read files, and `server.stats` asks how much room there is.
    let fileCalls: Gate
    let longLines = Gate { 1 }
    /// Connections that begin: one at a time while other users are there, and the next after ``pauseAfterConnecting``.
    let newConnections: Gate
    let submissions: Gate
    let isShared: @Sendable () -> Bool

    /// `isShared` tells whether other users are there.
    init(isShared: @escaping @Sendable () -> Bool) {
        self.isShared = isShared
        calls = Gate { isShared() ? Self.mostSharedCalls : Self.mostCalls }
        fileCalls = Gate { isShared() ? Self.mostSharedCalls : Self.mostCalls }
        submissions = Gate { isShared() ? Self.mostSubmissions : .max }
        newConnections = Gate { isShared() ? 1 : .max }
    }

    /// What a call of this method has to pass; nil for one that has no turn.
    func gate(of method: MethodName) -> Gate? {
        switch method {
        case .serverBackup: nil
        case .jobCancel, .jobRetry, .jobRemove, .jobResult, .scheduleSet, .serverStats: fileCalls
        default: calls
        }
    }

    /// How long nobody has the turn after a call of this method: as long as one for a page of jobs was, while others are there,
    /// so that they have the processors for half of the time at least. `job.retry` writes what has come into the link again.
    func pause(after method: MethodName, of time: TimeAmount) -> TimeAmount? {
        switch method {
        case .jobList, .jobWait, .jobWatch, .jobRetry, .scheduleList: pause(time)
        default: nil
        }
    }

    /// Twice as long after a long line was read, as what it asks for takes its time as well.
    func pause(afterReading time: TimeAmount) -> TimeAmount? { pause(time + time) }

    /// Twice as long after submissions that count as `size`, where that is much for the store.
    func pause(afterSubmitting size: Int, _ time: TimeAmount) -> TimeAmount? {
        size > Self.submissionGroup ? pause(time + time) : nil
    }

    /// How long nobody has the turn after a connection has begun.
    var pauseAfterConnecting: TimeAmount? { isShared() ? Self.pauseAfterConnecting : nil }

    /// Longer by what the user has under way besides, so that others have half of the time also where somebody asks for
    /// everything at once.
    private func pause(_ time: TimeAmount) -> TimeAmount? {
        guard isShared() else { return nil }
        let busy = Int64([calls, fileCalls, longLines, submissions].count(where: \.isBusy))
        return min(.nanoseconds(time.nanoseconds * max(1, busy)), Self.longestPause)
    }

    /// What a submission that takes so many bytes in memory counts among those on their way.
    static func size(ofSubmission bytes: Int) -> Int { 1 + bytes / submissionBytes }

    /// The most that goes to the store together, but for one submission that counts as more.
    var largestGroup: Int { isShared() ? Self.submissionGroup : .max }
}
