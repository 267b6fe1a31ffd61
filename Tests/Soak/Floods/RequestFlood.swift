import Foundation
import Glibc

/// Sends a request again and again over connections, as many at a time, on a thread of its own.
final class RequestFlood: Sendable {
    private let descriptors: [Int32]
    private let ended = DispatchSemaphore(value: 0)

    init(_ descriptors: [Int32], _ request: [UInt8], ahead: Int) {
        self.descriptors = descriptors
        Thread.detachNewThread { [ended] in
            Self.run(descriptors, request, ahead)
            ended.signal()
        }
    }

    /// Ends it, and returns once it has.
    func stop() {
        for descriptor in descriptors { shutdown(descriptor, Int32(SHUT_RDWR)) }
        ended.wait()
        for descriptor in descriptors { close(descriptor) }
    }

    /// `SCHED_IDLE` of <linux/sched.h>, which Glibc's module does not have.
    static let idlePolicy: Int32 = 5

    private static func run(_ descriptors: [Int32], _ request: [UInt8], _ ahead: Int) {
        // For this thread only; a failure does not matter.
        var parameters = sched_param()
        _ = sched_setscheduler(0, idlePolicy, &parameters)
        /// Bytes that each has yet to send.
        var unsent = descriptors.map { _ in ahead * request.count }
        var buffer = [UInt8](repeating: 0, count: 1 << 20)
        var polls = descriptors.map { pollfd(fd: $0, events: Int16(POLLIN | POLLOUT), revents: 0) }
        while poll(&polls, nfds_t(polls.count), -1) > 0 {
            for index in polls.indices {
                if polls[index].revents & Int16(POLLIN | POLLHUP) != 0 {
                    let count = read(descriptors[index], &buffer, buffer.count)
                    guard count > 0 else { return }
                    unsent[index] += request.count * buffer[..<count].count { $0 == UInt8(ascii: "\n") }
                }
                if polls[index].revents & Int16(POLLOUT) != 0, unsent[index] > 0 {
                    let start = (request.count - unsent[index] % request.count) % request.count
                    let sent = request.withUnsafeBytes { bytes in
                        write(descriptors[index], bytes.baseAddress?.advanced(by: start), request.count - start)
                    }
                    if sent > 0 { unsent[index] -= sent }
                }
                polls[index].events = Int16(POLLIN | (unsent[index] > 0 ? POLLOUT : 0))
            }
        }
    }
}
