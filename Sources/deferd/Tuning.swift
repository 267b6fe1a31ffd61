import CTuning
import Foundation

/// What makes the daemon smaller and quieter by means that the platform does not promise.
///
/// Nothing depends on any of it: with `DEFERD_TUNING=off` in its environment the daemon does without, and `MALLOC_CONF`
/// overrides what jemalloc reads before the daemon runs. The table in Sources/README.md says what each gains.
enum Tuning {
    private static let isOn = ProcessInfo.processInfo.environment["DEFERD_TUNING"] != "off"

    /// To be called before there are threads.
    static func begin() {
        if isOn { deferd_settle_allocator() }
    }

    /// To be called once the daemon serves: most of its code was needed to start only.
    static func settle() {
        if isOn { deferd_release_image() }
    }
}
