import Glibc
import TestSupport
import Testing

@testable import JobServer

/// One after the other, as the mask of new files is one for the whole process.
@Suite(.serialized) struct ListenerTests {
    let directory: TemporaryDirectory
    let path: String

    init() throws {
        directory = try TemporaryDirectory()
        path = "\(directory.path)/socket"
    }

    /// A client's end of a connection to `path`; nil without a listener.
    private func connect(_ path: String) -> Int32? {
        var address = sockaddr_un()
        address.sun_family = sa_family_t(AF_UNIX)
        withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: path.utf8) }
        let descriptor = socket(AF_UNIX, Int32(SOCK_STREAM.rawValue), 0)
        let result = withUnsafePointer(to: address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                Glibc.connect(descriptor, $0, socklen_t(MemoryLayout<sockaddr_un>.size))
            }
        }
        if result == 0 { return descriptor }
        close(descriptor)
        return nil
    }

    private func status(_ path: String) -> stat? {
        var status = stat()
        return lstat(path, &status) == 0 ? status : nil
    }

    private func write(_ text: String, to path: String) {
        let file = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0o600)
        _ = Array(text.utf8).withUnsafeBytes { Glibc.write(file, $0.baseAddress, $0.count) }
        close(file)
    }

    private func error(at path: String, group: String? = nil) -> ListenerError? {
        #expect(throws: ListenerError.self) { try Listener(path: path, mode: 0o660, group: group) }
    }

    // MARK: - Making the socket

    @Test(arguments: [0o600, 0o660, 0o666, 0o777] as [UInt32])
    func socket_hasItsMode_whateverTheMask(_ mode: UInt32) throws {
        let mask = umask(0o077)
        let listener = try Listener(path: path, mode: mode, group: nil)
        #expect(umask(mask) == 0o077, "the mask of the process is as it was")
        defer { close(listener.descriptor) }
        let made = try #require(status(path))
        #expect(made.st_mode & S_IFMT == S_IFSOCK && made.st_mode & 0o7777 == mode)
        #expect(listener.path == path)
        #expect(fcntl(listener.descriptor, F_GETFL) & O_NONBLOCK != 0)
        #expect(fcntl(listener.descriptor, F_GETFD) & FD_CLOEXEC != 0)
    }

    @Test func socket_hasItsGroup() throws {
        let group = try #require(getgrgid(getegid())?.pointee)
        let listener = try Listener(path: path, mode: 0o660, group: String(cString: group.gr_name))
        defer { close(listener.descriptor) }
        #expect(status(path)?.st_gid == getegid())
    }

    @Test func group_thatIsNone_isRefused_andNothingIsMade() throws {
        let error = error(at: path, group: "no-such-group-anywhere")
        #expect(error?.message.contains("no-such-group-anywhere") == true)
        #expect(directory.names.isEmpty)
    }

    // MARK: - What is there already

    @Test func staleSocket_isReplaced() throws {
        close(try Listener(path: path, mode: 0o600, group: nil).descriptor)
        #expect(connect(path) == nil && directory.names == ["socket"])
        let listener = try Listener(path: path, mode: 0o660, group: nil)
        defer { close(listener.descriptor) }
        let client = try #require(connect(path))
        close(client)
    }

    @Test func liveSocket_isRefused_andGoesOn() throws {
        let first = try Listener(path: path, mode: 0o600, group: nil)
        defer { close(first.descriptor) }
        let error = error(at: path)
        #expect(error?.isInUse == true && error?.message.contains(path) == true)
        let client = try #require(connect(path))
        close(client)
        #expect(status(path).map { $0.st_mode & 0o7777 } == 0o600)
    }

    @Test func file_isLeftAlone() throws {
        write("precious", to: path)
        #expect(error(at: path)?.isInUse == false)
        let file = open(path, O_RDONLY)
        defer { close(file) }
        var content = [UInt8](repeating: 0, count: 20)
        #expect(read(file, &content, 20) == 8 && content.prefix(8).elementsEqual("precious".utf8))
    }

    @Test func directoryAndLink_areLeftAlone() throws {
        #expect(error(at: directory.path)?.isInUse == false)
        #expect(symlink("/tmp/deferd-nowhere", path) == 0)
        #expect(error(at: path)?.isInUse == false)
        #expect(status(path).map { $0.st_mode & S_IFMT } == S_IFLNK)
    }

    // MARK: - Paths

    @Test func path_isAtMost107Bytes() throws {
        let exact = path + String(repeating: "x", count: 107 - path.utf8.count)
        let listener = try Listener(path: exact, mode: 0o600, group: nil)
        defer { close(listener.descriptor) }
        let client = try #require(connect(exact))
        close(client)
        let error = error(at: exact + "x")
        #expect(error?.message.contains("107") == true)
        #expect(directory.names.count == 1)
    }

    @Test func path_isRefused_whereItIsEmptyOrItsDirectoryMissing() {
        #expect(error(at: "")?.isInUse == false)
        let missing = error(at: "\(directory.path)/missing/socket")
        #expect(missing?.message.contains("missing/socket") == true)
    }

    // MARK: - Accepting

    @Test func connections_come_untilItIsStopped() async throws {
        let listener = try Listener(path: path, mode: 0o600, group: nil)
        let (stream, stop) = listener.connections { $0 }
        var connections = stream.makeAsyncIterator()
        for _ in 0..<3 {
            let client = try #require(connect(path))
            let server = try #require(await connections.next())
            #expect(fcntl(server, F_GETFL) & O_NONBLOCK != 0 && fcntl(server, F_GETFD) & FD_CLOEXEC != 0)
            #expect(Peer(socket: server)?.uid == geteuid())
            #expect(Glibc.write(client, "x", 1) == 1)
            var byte: UInt8 = 0
            #expect(read(server, &byte, 1) == 1 && byte == UInt8(ascii: "x"))
            close(client)
            close(server)
        }
        stop()
        #expect(await connections.next() == nil)
        #expect(directory.names.isEmpty, "its socket is gone")
    }

    @Test func adoptedSocket_isServed_andItsFileLeft() async throws {
        let made = try Listener(path: path, mode: 0o600, group: nil)
        _ = fcntl(made.descriptor, F_SETFL, 0)
        let listener = Listener(adopting: made.descriptor)
        #expect(listener.path == nil && fcntl(listener.descriptor, F_GETFL) & O_NONBLOCK != 0)
        let (stream, stop) = listener.connections { $0 }
        let client = try #require(connect(path))
        var connections = stream.makeAsyncIterator()
        let server = try #require(await connections.next())
        close(client)
        close(server)
        stop()
        #expect(await connections.next() == nil)
        #expect(directory.names == ["socket"])
    }
}
