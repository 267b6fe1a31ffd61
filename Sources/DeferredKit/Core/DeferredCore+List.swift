extension DeferredCore {
    /// Adds a waiter that nobody else knows yet and runs it if the outcome is there.
    @usableFromInline
    final func append(_ waiter: DeferredWaiter, leaving added: UInt32) {
        waiter.upstream = Unmanaged.passUnretained(self)
        let kept = Unmanaged.passRetained(waiter)
        let marks = lock()
        if marks & (Mark.resolved | Mark.delivering) == Mark.resolved {
            due = kept
            unlock(marks | added | Mark.delivering)
            Trampoline.deliver(Unmanaged.passRetained(self), Trampoline.current)
            return
        }
        link(kept, to: tail)
        guard marks & Mark.resolved == 0 else { return unlock(marks | added) }
        if waiter.loneMarks & Mark.interested != 0 { interest += 1 }
        let begins = extras != nil && shareProgress(with: waiter, marks)
        unlock(marks | added | (begins ? Mark.delivering : 0))
        if begins { Trampoline.deliver(Unmanaged.passRetained(self), Trampoline.current) }
    }

    /// Adds at the end of the list. Call it locked.
    @inline(__always)
    final func link(_ kept: Unmanaged<DeferredWaiter>, to last: Unmanaged<DeferredWaiter>?) {
        // Also where there is none: a waiter that comes from another list may have had one there.
        kept._withUnsafeGuaranteedRef { $0.previous = last }
        if let last {
            last._withUnsafeGuaranteedRef { $0.next = kept }
        } else {
            head = kept
        }
        tail = kept
    }

    /// Takes a waiter out of the list, and gives back the list's reference to it. Call it with both locked and
    /// this one unresolved.
    final func unlink(_ waiter: DeferredWaiter) -> Unmanaged<DeferredWaiter>? {
        guard waiter.upstream?.toOpaque() == Unmanaged.passUnretained(self).toOpaque() else { return nil }
        waiter.upstream = nil
        if let previous = waiter.previous {
            previous._withUnsafeGuaranteedRef { $0.next = waiter.next }
        } else {
            head = waiter.next
        }
        if let next = waiter.next {
            next._withUnsafeGuaranteedRef { $0.previous = waiter.previous }
        } else {
            tail = waiter.previous
        }
        waiter.next = nil
        waiter.previous = nil
        return Unmanaged.passUnretained(waiter)
    }

    /// The second half of resolving: unlocks with these marks and delivers. Call it locked, the outcome stored.
    @usableFromInline
    final func publish(_ marks: UInt32, _ trampoline: Trampoline.Reference?) {
        let parting = extras
        if let parting { extras = parting.remains }
        if marks & Mark.delivering == 0, let first = head {
            due = first
            head = nil
            tail = nil
            unlock(marks | Mark.delivering)
            Trampoline.deliver(Unmanaged.passRetained(self), trampoline ?? Trampoline.current)
        } else {
            unlock(marks)
        }
        withExtendedLifetime(parting) {}
    }

    /// Runs one callback and tells whether there are more.
    final func deliverNext(_ trampoline: Trampoline.Reference) -> Bool {
        if let first = due {
            var waiter = first.takeRetainedValue()
            due = waiter.next
            waiter.next = nil
            waiter.fire(from: self, trampoline)
            DeferredCore.shorten(&waiter, trampoline)
            if due != nil { return true }
        } else {
            deliverProgress(trampoline)
        }
        let marks = lock()
        if marks & Mark.resolved != 0, let first = head {
            due = first
            head = nil
            tail = nil
            unlock(marks)
            return true
        }
        if let extras, !extras.rounds.isEmpty {
            unlock(marks)
            return true
        }
        unlock(marks & ~Mark.delivering)
        return false
    }

    /// Lets go of everybody who waits for what will never resolve. Part of `deinit`.
    final func abandonWaiters() {
        guard let first = head, let last = tail else { return }
        var next = head
        while let waiter = next {
            waiter._withUnsafeGuaranteedRef { waiter in
                let marks = waiter.lock()
                waiter.upstream = nil
                waiter.previous = nil
                next = waiter.next
                waiter.unlock((marks | Mark.orphaned) & ~Mark.interested)
            }
        }
        head = nil
        tail = nil
        Trampoline.release(orphans: first, last: last)
    }
}
