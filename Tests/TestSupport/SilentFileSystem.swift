import Foundation
import Glibc

/// A mounted file system that does not answer: processes that use it wait in the kernel, where nothing can kill them.
package final class SilentFileSystem: Sendable {
    /// Whether this process may mount one.
    package static let isAvailable = (try? SilentFileSystem().end()) != nil

    /// The directory on which it is mounted.
    package let path = NSTemporaryDirectory() + "deferd-silent-\(UUID().uuidString)"
    /// The requests that it leaves without an answer.
    package let requests = AsyncStream.makeStream(of: Void.self)

    package init() throws {
        let device = open("/dev/fuse", O_RDWR | O_CLOEXEC)
        guard device >= 0 else { throw SystemCallError(errno) }
        let options = "fd=\(device),rootmode=40000,user_id=\(geteuid()),group_id=\(getegid())"
        guard mkdir(path, 0o700) == 0, mount("deferd", path, "fuse", 0, options) == 0 else {
            let error = errno
            rmdir(path)
            close(device)
            throw SystemCallError(error)
        }
        Thread.detachNewThread { [continuation = requests.continuation] in Self.serve(device, continuation) }
    }

    /// Lets all calls that wait fail.
    package func end() {
        // Where the file system is in use, this only ends its connection.
        umount2(path, Int32(MNT_FORCE))
        umount2(path, Int32(MNT_DETACH))
        rmdir(path)
    }

    private static let initialize: UInt32 = 26

    /// Reads requests until the end of the connection. Those that were never read could be killed.
    private static func serve(_ device: Int32, _ continuation: AsyncStream<Void>.Continuation) {
        let request = UnsafeMutableRawBufferPointer.allocate(byteCount: 1 << 18, alignment: 8)
        defer { request.deallocate() }
        while true {
            guard read(device, request.baseAddress, request.count) >= 0 else {
                if errno == EINTR || errno == ENOENT { continue }
                break
            }
            guard request.load(fromByteOffset: 4, as: UInt32.self) == initialize else {
                continuation.yield()
                continue
            }
            // Its length, the number of the request, and the version of the protocol.
            let number = request.load(fromByteOffset: 8, as: UInt64.self)
            var answer = [UInt8](repeating: 0, count: 80)
            answer.withUnsafeMutableBytes { answer in
                answer.storeBytes(of: 80, as: UInt32.self)
                answer.storeBytes(of: number, toByteOffset: 8, as: UInt64.self)
                answer.storeBytes(of: 7, toByteOffset: 16, as: UInt32.self)
                answer.storeBytes(of: 31, toByteOffset: 20, as: UInt32.self)
            }
            _ = write(device, answer, answer.count)
        }
        close(device)
        continuation.finish()
    }
}
