/// A progress value on its way to the waiters that want progress.
struct ProgressRound {
    let update: ProgressUpdate
    let number: UInt64
    /// The next waiter in the list to check.
    var waiter: DeferredWaiter
}

extension DeferredCore {
    /// The most values that wait while callbacks run; after that, the newest replaces the last.
    static var progressBacklog: Int { 16 }

    /// Makes `update` the latest progress.
    ///
    /// - Parameter rising: Whether to ignore falling values.
    @usableFromInline
    final func report(_ update: ProgressUpdate, rising: Bool = false) {
        var fresh: DeferredExtras?
        var marks = lock()
        if extras == nil {
            // Nothing is allocated under the lock.
            unlock(marks)
            fresh = DeferredExtras()
            marks = lock()
        }
        guard marks & Mark.resolved == 0, extras?.latest != update,
            !rising || extras?.latest.map(update.rises) ?? true, let extras = self.extras ?? fresh
        else { return unlock(marks) }
        self.extras = extras
        extras.latest = update
        extras.count += 1
        guard followers > 0, let head else { return unlock(marks) }
        let parting = extras.rounds.count >= DeferredCore.progressBacklog ? extras.rounds.popLast() : nil
        extras.rounds.append(ProgressRound(update: update, number: extras.count, waiter: head))
        unlock(marks | Mark.delivering)
        withExtendedLifetime(parting) {}
        if marks & Mark.delivering == 0 { Trampoline.deliver(self, Trampoline.current) }
    }

    /// The latest progress of a resolved Deferred.
    final var finalProgress: ProgressUpdate? { extras?.latest }

    /// Gives a newly added waiter the latest progress only.
    final func shareProgress(of extras: DeferredExtras, with waiter: DeferredWaiter) {
        waiter.seen = extras.count
        guard let latest = extras.latest else { return }
        waiter.seen -= 1
        // A round in progress has the latest value or an earlier one, and will reach the end of the list.
        if extras.rounds.isEmpty {
            extras.rounds.append(ProgressRound(update: latest, number: extras.count, waiter: waiter))
        }
    }

    /// Moves rounds whose next waiter is this one on to its successor.
    final func skip(_ waiter: DeferredWaiter, in extras: DeferredExtras) {
        // At most `progressBacklog` rounds.
        for index in extras.rounds.indices.reversed() where extras.rounds[index].waiter === waiter {
            if let next = waiter.next { extras.rounds[index].waiter = next } else { extras.rounds.remove(at: index) }
        }
    }

    /// Does one step of delivering progress. Requires the lock and releases it.
    ///
    /// - Returns: Whether to call again; if false, the delivery has ended.
    final func deliverProgress(_ marks: UInt32, _ trampoline: Trampoline.Reference) -> Bool {
        guard let extras, let round = extras.rounds.first else {
            unlock(marks & ~Mark.delivering)
            return false
        }
        let waiter = round.waiter
        if let next = waiter.next { extras.rounds[0].waiter = next } else { extras.rounds.removeFirst() }
        let isNew = waiter.constantMarks & Mark.followsProgress != 0 && waiter.seen < round.number
        if isNew { waiter.seen = round.number }
        unlock(marks)
        if isNew { waiter.progressed(from: self, round.update, trampoline) }
        return true
    }
}
