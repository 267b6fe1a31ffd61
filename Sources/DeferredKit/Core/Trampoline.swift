#if canImport(Glibc)
    import Glibc
#elseif canImport(Musl)
    import Musl
#elseif canImport(Darwin)
    import Darwin
#endif

/// A thread's list of Deferreds whose callbacks are due.
///
/// Callbacks run from one loop at the bottom of the stack. What a callback makes due goes to the front of the list,
/// in the order it became due, so it runs before the next callback of the Deferred that is being delivered.
@usableFromInline
struct Trampoline {
    @usableFromInline
    typealias Reference = UnsafeMutablePointer<Trampoline>

    /// The next Deferred to deliver; the list owns one reference to each of its members.
    private var head: Unmanaged<DeferredCore>?
    /// The last Deferred that the running callback made due.
    private var cursor: Unmanaged<DeferredCore>?
    private(set) var isActive = false
    /// Waiters whose upstream went without an outcome, to be released one after the other.
    private var orphans: Unmanaged<DeferredWaiter>?
    private var isReleasing = false
    /// What the link that runs now has just paused on.
    private var pause: Unmanaged<DeferredCore>?

    private static let key: pthread_key_t = {
        var key = pthread_key_t()
        let status = pthread_key_create(&key) { value in
            #if canImport(Darwin)
                value.assumingMemoryBound(to: Trampoline.self).deallocate()
            #else
                value?.assumingMemoryBound(to: Trampoline.self).deallocate()
            #endif
        }
        precondition(status == 0, "no thread-specific key left for DeferredKit")
        return key
    }()

    /// The calling thread's own.
    static var current: Reference {
        if let existing = pthread_getspecific(key) {
            return existing.assumingMemoryBound(to: Trampoline.self)
        }
        let fresh = Reference.allocate(capacity: 1)
        fresh.initialize(to: Trampoline())
        pthread_setspecific(key, fresh)
        return fresh
    }

    /// Holds back every callback until `body` is finished.
    @usableFromInline
    static func enter(_ body: (Reference) -> Void) {
        let trampoline = current
        guard !trampoline.pointee.isActive else { return body(trampoline) }
        trampoline.pointee.isActive = true
        body(trampoline)
        run(trampoline)
    }

    /// Delivers `core` (whose reference the trampoline takes over) now or after the callback that is running.
    static func deliver(_ core: Unmanaged<DeferredCore>, _ trampoline: Reference) {
        trampoline.pointee.insert(core)
        guard !trampoline.pointee.isActive else { return }
        trampoline.pointee.isActive = true
        run(trampoline)
    }

    private mutating func insert(_ core: Unmanaged<DeferredCore>) {
        core._withUnsafeGuaranteedRef { core in
            if let cursor {
                cursor._withUnsafeGuaranteedRef {
                    core.nextDue = $0.nextDue
                    $0.nextDue = Unmanaged.passUnretained(core)
                }
            } else {
                core.nextDue = head
                head = Unmanaged.passUnretained(core)
            }
        }
        cursor = core
    }

    /// Remembers what a link paused on until the link has run.
    mutating func notePause(on inner: DeferredCore) {
        pause = Unmanaged.passRetained(inner)
    }

    mutating func takePause() -> Unmanaged<DeferredCore>? {
        pause.take()
    }

    /// Runs what is due on this thread although a callback is not finished, as that is about to block the thread.
    static func catchUp() {
        let trampoline = current
        guard trampoline.pointee.isActive else { return }
        run(trampoline)
        trampoline.pointee.isActive = true
    }

    private static func run(_ trampoline: Reference) {
        while let next = trampoline.pointee.head {
            let again = next._withUnsafeGuaranteedRef { core in
                trampoline.pointee.head = core.nextDue
                core.nextDue = nil
                trampoline.pointee.cursor = nil
                return core.deliverNext(trampoline)
            }
            if again {
                trampoline.pointee.insert(next)
            } else {
                next.release()
            }
        }
        trampoline.pointee.cursor = nil
        trampoline.pointee.isActive = false
    }

    /// Releases waiters without an upstream; what they held may in turn be Deferreds with waiters, hence the loop.
    static func release(orphans first: Unmanaged<DeferredWaiter>, last: Unmanaged<DeferredWaiter>) {
        let trampoline = current
        last._withUnsafeGuaranteedRef { $0.next = trampoline.pointee.orphans }
        trampoline.pointee.orphans = first
        guard !trampoline.pointee.isReleasing else { return }
        trampoline.pointee.isReleasing = true
        while let next = trampoline.pointee.orphans {
            let waiter = next.takeRetainedValue()
            trampoline.pointee.orphans = waiter.next
            waiter.next = nil
            waiter.orphan()
        }
        trampoline.pointee.isReleasing = false
    }
}
