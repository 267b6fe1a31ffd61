#if canImport(Darwin)
    import Darwin
#else
    import Glibc
#endif

/// A thread's list of Deferreds whose callbacks are due.
///
/// Callbacks run from one loop at the bottom of the stack. Deferreds that a callback makes due come next, in the order
/// in which they became due, before the next callback of the Deferred that is being delivered.
@usableFromInline
struct Trampoline {
    @usableFromInline
    typealias Reference = UnsafeMutablePointer<Trampoline>

    /// Deferreds to deliver, the next one last.
    private var due: [DeferredCore] = []
    /// Deferreds that the running callback has made due, the first one first.
    private var added: [DeferredCore] = []
    private(set) var isActive = false
    /// Waiters whose upstream was released without an outcome, to be released one after the other, the next one last.
    private var orphans: [DeferredWaiter] = []
    private var isReleasing = false

    private static let key: pthread_key_t = {
        var key = pthread_key_t()
        let status = pthread_key_create(&key) { value in
            #if canImport(Darwin)
                let trampoline = value.assumingMemoryBound(to: Trampoline.self)
            #else
                guard let trampoline = value?.assumingMemoryBound(to: Trampoline.self) else { return }
            #endif
            trampoline.deinitialize(count: 1)
            trampoline.deallocate()
        }
        precondition(status == 0, "no thread-specific key left for DeferredKit")
        return key
    }()

    /// The calling thread's trampoline.
    static var current: Reference {
        if let existing = pthread_getspecific(key) {
            return existing.assumingMemoryBound(to: Trampoline.self)
        }
        let added = Reference.allocate(capacity: 1)
        added.initialize(to: Trampoline())
        pthread_setspecific(key, added)
        return added
    }

    /// Delays all callbacks until `body` has finished.
    @usableFromInline
    static func enter(_ body: (Reference) -> Void) {
        let trampoline = current
        guard !trampoline.pointee.isActive else { return body(trampoline) }
        trampoline.pointee.isActive = true
        body(trampoline)
        run(trampoline)
        trampoline.pointee.isActive = false
    }

    /// Delivers `core`, which is marked as being delivered, now or after the running callback.
    static func deliver(_ core: DeferredCore, _ trampoline: Reference) {
        guard !trampoline.pointee.isActive else { return trampoline.pointee.added.append(core) }
        trampoline.pointee.isActive = true
        if core.deliverNext(trampoline) { trampoline.pointee.due.append(core) }
        run(trampoline)
        trampoline.pointee.isActive = false
    }

    /// Runs due callbacks although one is unfinished, because it is about to block the thread.
    static func catchUp() {
        let trampoline = current
        if trampoline.pointee.isActive { run(trampoline) }
    }

    private static func run(_ trampoline: Reference) {
        while let core = trampoline.pointee.next() {
            if core.deliverNext(trampoline) { trampoline.pointee.due.append(core) }
        }
        // A thread that was once busy does not keep the memory.
        if trampoline.pointee.due.capacity > 1024 { trampoline.pointee.due = [] }
        if trampoline.pointee.added.capacity > 1024 { trampoline.pointee.added = [] }
    }

    private mutating func next() -> DeferredCore? {
        // Most callbacks make one Deferred due.
        if added.count == 1 { return added.popLast() }
        #if DEFECT_ORDER
            due += added
            added = []
        #endif
        while let core = added.popLast() { due.append(core) }
        return due.popLast()
    }

    /// Releases waiters without an upstream; these may release Deferreds with more waiters, hence the loop.
    static func release(_ waiters: inout [DeferredWaiter]) {
        let trampoline = current
        while let waiter = waiters.popLast() { trampoline.pointee.orphans.append(waiter) }
        guard !trampoline.pointee.isReleasing else { return }
        trampoline.pointee.isReleasing = true
        while let waiter = trampoline.pointee.orphans.popLast() { waiter.orphan() }
        trampoline.pointee.isReleasing = false
        if trampoline.pointee.orphans.capacity > 1024 { trampoline.pointee.orphans = [] }
    }
}
