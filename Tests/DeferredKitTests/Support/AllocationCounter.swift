import Foundation

#if canImport(Glibc)
    import Glibc
#endif

/// Counts the objects that this thread allocates, with the hook of Swift's runtime for instruments.
///
/// It changes the whole process, so call it in a process that does no other work.
enum AllocationCounter {
    private typealias Allocate = @convention(c) (UnsafeRawPointer?, Int, Int) -> UnsafeMutableRawPointer?

    // Unsafe: used by one test in a process of its own, on one thread; the hook looks which thread calls it.
    nonisolated(unsafe) private static var original: Allocate?
    nonisolated(unsafe) private static var thread: pthread_t?
    nonisolated(unsafe) private static var count = 0

    private static let allocateAndCount: Allocate = { type, size, mask in
        if let thread, pthread_equal(thread, pthread_self()) != 0 { count += 1 }
        return original?(type, size, mask)
    }

    /// The number of objects, including closure contexts, that `body` allocates; nil if the runtime has no such hook.
    static func count(_ body: () -> Void) -> Int? {
        guard let function = dlsym(nil, "_swift_allocObject"),
            let isOn = dlsym(
                nil, "_swift_enableSwizzlingOfAllocationAndRefCountingFunctions_forInstrumentsOnly")
        else { return nil }
        let slot = function.assumingMemoryBound(to: Allocate.self)
        let original = slot.pointee
        self.original = original
        thread = pthread_self()
        count = 0
        slot.pointee = allocateAndCount
        isOn.assumingMemoryBound(to: Bool.self).pointee = true
        body()
        isOn.assumingMemoryBound(to: Bool.self).pointee = false
        slot.pointee = original
        return count
    }
}
