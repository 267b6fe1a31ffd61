import CLinux
import Glibc
import SystemPackage

/// A started program: the ends of its pipes from which the daemon reads.
struct ProgramLaunch: Sendable {
    let output: Int32
    let errors: Int32

    /// Has the guard start a program, in a new directory if `ownDirectory` is given. Blocks.
    ///
    /// Its input is a file, so that no thread waits for a program that does not read.
    init(
        _ id: UInt64, _ command: ProgramCommand, in ownDirectory: String?, by connection: ProgramGuard,
        input line: [UInt8]?, inputFile: Int32?
    ) throws(Errno) {
        var opened: [Int32] = []
        defer { for descriptor in opened { close(descriptor) } }
        func opening(_ descriptor: Int32) throws(Errno) -> Int32 {
            guard descriptor >= 0 else { throw Errno(rawValue: errno) }
            opened.append(descriptor)
            return descriptor
        }
        func memoryFile(_ bytes: [UInt8]) throws(Errno) -> Int32 {
            let file = try opening(deferd_memory_file("deferd"))
            try FileOperations.real.write(bytes, to: file)
            return file
        }
        func pipe() throws(Errno) -> (read: Int32, write: Int32) {
            var ends: [Int32] = [-1, -1]
            guard deferd_pipe(&ends) == 0 else { throw Errno(rawValue: errno) }
            opened += ends
            return (ends[0], ends[1])
        }
        let block = command.block(in: ownDirectory ?? command.directory ?? "")
        let blockFile = try memoryFile(block)
        let inputFile = if let line { try memoryFile(line) } else { inputFile }
        // Opened anew, so that the program can only read it, from its beginning.
        let input = try opening(
            open(inputFile.map { "/proc/self/fd/\($0)" } ?? "/dev/null", O_RDONLY | O_CLOEXEC))
        let (output, errors) = (try pipe(), try pipe())
        if let ownDirectory, mkdir(ownDirectory, 0o700) != 0 { throw Errno(rawValue: errno) }
        do throws(Errno) {
            try connection.start(
                id, block: blockFile, size: block.count, streams: [input, output.write, errors.write])
        } catch {
            if let ownDirectory { rmdir(ownDirectory) }
            throw error
        }
        // The guard has its own descriptors.
        opened.removeAll { $0 == output.read || $0 == errors.read }
        (self.output, self.errors) = (output.read, errors.read)
    }
}
