// Unchecked: mutable state is under `lock`, or belongs to the thread that joins the members.
/// The members that a list's Deferred waits for, and their outcomes.
///
/// The members retain it and the list's Deferred. The references from the list to its members are needed only until the
/// list has resolved, and keep only the Deferreds of members alive that have arrived.
@usableFromInline
final class Gathering: @unchecked Sendable {
    /// Handles one member's outcome.
    @usableFromInline
    typealias Arrival =
        @Sendable (
            _ gathering: Gathering, _ source: DeferredCore, _ target: DeferredCore, _ index: Int,
            _ trampoline: Trampoline.Reference
        ) -> Void

    private let lock = Lock()
    let arrival: Arrival
    private var members: [MemberWaiter] = []
    /// The members that have arrived, in their places.
    private var arrived: [DeferredCore?]
    private var remaining: Int
    private var progress: GatheredProgress
    private var isJoining = true
    /// Whether the list withdraws from its members, once it has its outcome.
    private var withdraws: Bool?

    private init(count: Int, _ arrival: @escaping Arrival) {
        remaining = count
        arrived = Array(repeating: nil, count: count)
        progress = GatheredProgress(count: count)
        self.arrival = arrival
    }

    /// Makes `target` wait for all `cores`.
    @usableFromInline
    static func join(_ cores: [DeferredCore], _ target: DeferredCore, _ arrival: @escaping Arrival) {
        let gathering = Gathering(count: cores.count, arrival)
        gathering.members.reserveCapacity(cores.count)
        for index in cores.indices { gathering.members.append(MemberWaiter(index, gathering, target)) }
        let extras = DeferredExtras()
        extras.gathering = gathering
        target.extras = extras
        // No member arrives on this thread before all have joined.
        Trampoline.enter { trampoline in
            for (index, core) in cores.enumerated() { core.append(gathering.members[index], leaving: Mark.looked) }
            let withdraws = gathering.lock.withLock {
                gathering.isJoining = false
                return gathering.withdraws
            }
            if let withdraws { gathering.leave(withdrawing: withdraws, trampoline) }
        }
    }

    // MARK: Arrivals

    /// Counts an arrival.
    ///
    /// - Returns: All members in order, if it was the last.
    @usableFromInline
    func count(_ index: Int, _ source: DeferredCore, _ target: DeferredCore) -> [DeferredCore]? {
        let final = source.finalProgress
        let (isLast, update) = lock.withLock { () -> (Bool, ProgressUpdate?) in
            remaining -= 1
            arrived[index] = source
            return (remaining == 0, progress.complete(index, final))
        }
        if let update { target.report(update, rising: true) }
        return isLast ? arrived.compactMap(\.self) : nil
    }

    func progressed(_ index: Int, _ update: ProgressUpdate, _ target: DeferredCore) {
        let update = lock.withLock { progress.update(index, update) }
        if let update { target.report(update, rising: true) }
    }

    // MARK: Leaving

    /// Ends the wait for the remaining members, because the list has its outcome.
    @usableFromInline
    func dismiss(withdrawing: Bool = true, _ trampoline: Trampoline.Reference) {
        let isNow = lock.withLock {
            guard withdraws == nil else { return false }
            withdraws = withdrawing
            return !isJoining
        }
        if isNow { leave(withdrawing: withdrawing, trampoline) }
    }

    private func leave(withdrawing: Bool, _ trampoline: Trampoline.Reference) {
        for member in members where member.marks & Mark.resolved == 0 {
            let leave = member.leave(unlinking: true)
            if case .gone = leave { continue }
            member.orphan()
            if withdrawing, case .unwanted(let upstream) = leave { upstream.abandon(trampoline) }
        }
    }

    /// Withdraws the list's interest in all members, which then decide its outcome.
    func withdraw(below failable: DeferredCore?, _ work: inout [DeferredCore.Abandoned]) {
        for member in members {
            guard case .unwanted(let upstream) = member.leave(unlinking: false) else { continue }
            work.append(DeferredCore.Abandoned(core: upstream, failable: failable))
        }
    }

    /// Whether a member will not decide the outcome: other consumers want it, or it will never resolve.
    var waitsWithOthers: Bool {
        members.contains { member in
            member.withUpstream { marks, upstream, theirs in
                guard let upstream else { return marks & (Mark.orphaned | Mark.resolved) == Mark.orphaned }
                return (marks | theirs) & Mark.resolved == 0 && upstream.interest > 0
            }
        }
    }

    func upstreams() -> [DeferredCore] {
        members.compactMap { member in member.withUpstream { _, upstream, _ in upstream } }
    }
}
