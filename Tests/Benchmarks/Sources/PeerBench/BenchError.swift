import Glibc

/// Why a measurement could not be taken.
struct BenchError: Error, CustomStringConvertible {
    let description: String

    init(_ description: String) {
        self.description = description
    }

    /// A system call that failed; to be made right after it.
    static func system(_ action: String) -> BenchError {
        BenchError("Cannot \(action): \(String(cString: strerror(errno))).")
    }
}
