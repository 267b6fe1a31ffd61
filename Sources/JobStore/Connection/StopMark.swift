import Glibc

/// Says which life ended by itself, in a file that has its room from the start: so a full disk makes no clean stop look
/// like a crash.
final class StopMark {
    /// The last life that ended by itself; 0 for none.
    let life: Int64
    private let file: Int32

    /// Opens the file at `path`, or makes it. Without it each end counts as a crash.
    init(_ path: String) {
        let file = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0o600)
        self.file = file
        var bytes: Int64 = 0
        let count = withUnsafeMutableBytes(of: &bytes) { pread(file, $0.baseAddress, $0.count, 0) }
        life = count == 8 ? Int64(littleEndian: bytes) : 0
        if file >= 0, count < 8 { write(0) }
    }

    deinit { if file >= 0 { Glibc.close(file) } }

    func set(_ life: Int64) { write(life) }

    private func write(_ life: Int64) {
        withUnsafeBytes(of: life.littleEndian) { _ = pwrite(file, $0.baseAddress, $0.count, 0) }
        fsync(file)
    }
}
