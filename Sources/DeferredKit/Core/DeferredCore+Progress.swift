/// A progress value on its way to those who wanted progress when it was reported.
struct ProgressRound {
    var update: ProgressUpdate
    var waiters: ArraySlice<DeferredWaiter>
    /// Went to everybody, so a newer value may take its place.
    let isCommon: Bool
}

extension DeferredCore {
    /// How many values may wait while callbacks run; from then on the newest replaces the last.
    static var progressBacklog: Int { 16 }

    /// Makes `update` the latest progress.
    ///
    /// - Parameter rising: Values that fall are ignored.
    @usableFromInline
    final func report(_ update: ProgressUpdate, rising: Bool = false) {
        let marks = lock()
        guard marks & Mark.resolved == 0, extras?.latest != update,
            !rising || extras?.latest.map(update.rises) ?? true
        else { return unlock(marks) }
        let extras = self.extras ?? DeferredExtras()
        self.extras = extras
        extras.latest = update
        let followers = self.followers()
        guard !followers.isEmpty else { return unlock(marks) }
        var parting: ProgressRound?
        if extras.rounds.count >= DeferredCore.progressBacklog, extras.rounds[extras.rounds.count - 1].isCommon {
            parting = extras.rounds.removeLast()
        }
        extras.rounds.append(ProgressRound(update: update, waiters: followers[...], isCommon: true))
        unlock(marks | Mark.delivering)
        withExtendedLifetime(parting) {}
        if marks & Mark.delivering == 0 {
            Trampoline.deliver(Unmanaged.passRetained(self), Trampoline.current)
        }
    }

    /// The latest progress of a resolved Deferred.
    final var finalProgress: ProgressUpdate? { extras?.latest }

    private final func followers() -> [DeferredWaiter] {
        var followers: [DeferredWaiter] = []
        var next = head
        while let waiter = next {
            waiter._withUnsafeGuaranteedRef { waiter in
                if waiter.loneMarks & Mark.followsProgress != 0 { followers.append(waiter) }
                next = waiter.next
            }
        }
        return followers
    }

    /// Gives a waiter that is being added the latest progress. Call it locked.
    ///
    /// - Returns: Whether there is something to deliver now.
    final func shareProgress(with waiter: DeferredWaiter, _ marks: UInt32) -> Bool {
        let mine = waiter.loneMarks
        guard let extras, let latest = extras.latest, mine & Mark.followsProgress != 0 else { return false }
        if mine & Mark.deferred != 0 {
            // A new link; nobody observes it yet.
            let link = unsafeDowncast(waiter, to: DeferredCore.self)
            link.extras = DeferredExtras()
            link.extras?.latest = latest
            return false
        }
        extras.rounds.append(ProgressRound(update: latest, waiters: [waiter], isCommon: false))
        return marks & Mark.delivering == 0
    }

    /// Runs one progress callback, if one is due.
    final func deliverProgress(_ trampoline: Trampoline.Reference) {
        var parting: ProgressRound?
        let marks = lock()
        guard let extras, !extras.rounds.isEmpty else { return unlock(marks) }
        let update = extras.rounds[0].update
        let waiter = extras.rounds[0].waiters.removeFirst()
        if extras.rounds[0].waiters.isEmpty { parting = extras.rounds.removeFirst() }
        unlock(marks)
        withExtendedLifetime(parting) {}
        waiter.progressed(from: self, update, trampoline)
    }
}
