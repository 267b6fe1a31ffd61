import CTuning
import Foundation

/// Measures that make the daemon smaller and quieter, but that the platform does not promise.
///
/// Nothing depends on them: `DEFERD_TUNING=off` in the environment turns them off, and `MALLOC_CONF` overrides jemalloc's
/// settings. Sources/README.md says what each gains.
enum Tuning {
    private static let isOn = ProcessInfo.processInfo.environment["DEFERD_TUNING"] != "off"

    /// Call this before starting threads.
    static func begin() {
        if isOn { deferd_settle_allocator() }
    }

    /// Call this when the daemon serves: most of its code was needed only to start.
    static func settle() {
        if isOn { deferd_release_image() }
    }
}
