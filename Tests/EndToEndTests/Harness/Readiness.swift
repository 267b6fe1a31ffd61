import Foundation
import Glibc
import TestSupport
import Testing

/// The service manager's end of the notification protocol, which tells when a daemon is ready.
final class Readiness: Sendable {
    let path: String
    private let descriptor: FileDescriptor
    private let messages = Mailbox<String>()
    /// The notifications from the daemon.
    let statuses = Mailbox<String>()

    init(in directory: TemporaryDirectory) throws {
        path = directory.path + "/notify-\(UInt32.random(in: 0...UInt32.max))"
        let number = socket(AF_UNIX, Int32(SOCK_DGRAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
        descriptor = FileDescriptor(number: number)
        try #require(number >= 0)
        try #require(try UnixAddress(path).with { bind(number, $0, $1) } == 0)
        Thread.detachNewThread { [descriptor, messages, statuses] in
            while let bytes = descriptor.read() {
                let text = String(decoding: bytes, as: UTF8.self)
                if text.contains("READY=1") { messages.put(text) }
                for line in text.split(separator: "\n") where Self.told.contains(where: line.hasPrefix) {
                    statuses.put(String(line))
                }
            }
            messages.close()
            descriptor.close()
        }
    }

    /// The kept part of the notifications.
    private static let told = ["STATUS=", "EXTEND_", "MAINPID=", "ERRNO=", "EXIT_STATUS=", "WATCHDOG="]

    /// Waits until the daemon is ready; false if it ended before.
    func isReached() async throws -> Bool {
        try await messages.next("readiness of the daemon") != nil
    }

    /// Ends the listening.
    func close() { descriptor.shutDown() }
}
