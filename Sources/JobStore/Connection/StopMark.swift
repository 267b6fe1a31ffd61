import Glibc

/// Records the last life that ended cleanly, in a file that has its room from the start, so that a clean stop on a full disk
/// does not look like a crash.
final class StopMark {
    /// The last life that ended cleanly; 0 if none did.
    let life: Int64
    private let file: Int32

    /// Opens or makes the file at `path`. Without it, each end counts as a crash.
    init(_ path: String) {
        let file = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0o600)
        self.file = file
        var bytes: Int64 = 0
        let count = withUnsafeMutableBytes(of: &bytes) { pread(file, $0.baseAddress, $0.count, 0) }
        life = count == 8 ? Int64(littleEndian: bytes) : 0
        if file >= 0, count < 8 { set(0) }
    }

    deinit { if file >= 0 { Glibc.close(file) } }

    func set(_ life: Int64) {
        withUnsafeBytes(of: life.littleEndian) { _ = pwrite(file, $0.baseAddress, $0.count, 0) }
        fsync(file)
    }
}
