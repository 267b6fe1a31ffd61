import CSystemd
import Dispatch
import Glibc

/// Reports the state of this process to the service manager.
///
/// Every call does nothing if `NOTIFY_SOCKET` is unset. A call sends one datagram and may wait for space in the
/// manager's queue, but never for an answer: there is none.
package struct ServiceNotifier: Sendable {
    /// The longest status line in UTF-8 bytes; the service manager drops a notification of more than 4 KiB.
    package static let statusLimit = 1024

    package init() {}

    /// Whether a service manager listens.
    package var isActive: Bool { getenv("NOTIFY_SOCKET") != nil }

    /// Reports that the start or a reload is done, and requests are served.
    package func ready(status: String? = nil) throws(SystemdError) {
        try send(["READY=1"] + (status.map { ["STATUS=" + Self.line($0)] } ?? []))
    }

    /// Sets the line that `systemctl status` shows.
    package func status(_ text: String) throws(SystemdError) { try send(["STATUS=" + Self.line(text)]) }

    /// Reports that the process is draining and will end by itself.
    package func stopping(status: String? = nil) throws(SystemdError) {
        try send(["STOPPING=1"] + (status.map { ["STATUS=" + Self.line($0)] } ?? []))
    }

    /// Reports that the configuration is being reloaded; `ready(status:)` must follow in any case.
    package func reloading() throws(SystemdError) {
        // The time stamp lets Type=notify-reload tell this reload from an earlier one that is still in the queue.
        try send(["RELOADING=1", "MONOTONIC_USEC=\(DispatchTime.now().uptimeNanoseconds / 1_000)"])
    }

    /// Feeds the watchdog once.
    package func watchdog() throws(SystemdError) { try send(["WATCHDOG=1"]) }

    /// Reports why the process ends, and its exit status.
    package func failed(status: String, errorNumber: Int32, exitStatus: Int32) throws(SystemdError) {
        try send(["STATUS=" + Self.line(status), "ERRNO=\(errorNumber)", "EXIT_STATUS=\(exitStatus)"])
    }

    /// Names the process that is the service from now on.
    package func mainPID(_ pid: Int32) throws(SystemdError) { try send(["MAINPID=\(pid)"]) }

    /// Gives the manager a copy of a descriptor, to be passed under that name to the next process of the service.
    ///
    /// The unit must allow it (`FileDescriptorStoreMax=`); the manager does not report if it does not.
    package func storeDescriptor(_ descriptor: Int32, name: String) throws(SystemdError) {
        try send(["FDSTORE=1", "FDNAME=\(name)"], descriptors: [descriptor])
    }

    /// Makes the manager close the descriptors stored under this name.
    package func removeDescriptors(name: String) throws(SystemdError) {
        try send(["FDSTOREREMOVE=1", "FDNAME=\(name)"])
    }

    private func send(_ assignments: [String], descriptors: [Int32] = []) throws(SystemdError) {
        let text = assignments.joined(separator: "\n")
        let reserve = isActive ? Self.reserve : -1
        var result = sd_pid_notify_with_fds(0, 0, text, descriptors, UInt32(descriptors.count))
        if result == -EMFILE || result == -ENFILE, descriptors.isEmpty {
            result = Self.send(text, by: reserve) ?? result
        }
        guard result >= 0 else {
            let names = assignments.map { $0.prefix { $0 != "=" } }.joined(separator: " and ")
            throw SystemdError(
                "The service manager did not receive \(names): check that NOTIFY_SOCKET names its socket.",
                errorNumber: -result)
        }
    }

    /// A socket that is made with the first notification. libsystemd opens one for each, and the watchdog must not end
    /// a daemon that has no free descriptors for a while.
    private static let reserve = socket(AF_UNIX, Int32(SOCK_DGRAM.rawValue | SOCK_CLOEXEC.rawValue), 0)

    /// Returns the same result as libsystemd, or nil if the manager does not listen at a Unix socket.
    private static func send(_ text: String, by reserve: Int32) -> Int32? {
        guard reserve >= 0, let variable = getenv("NOTIFY_SOCKET") else { return nil }
        let name = Array(String(cString: variable).utf8)
        var address = sockaddr_un()
        address.sun_family = sa_family_t(AF_UNIX)
        let start = MemoryLayout<sockaddr_un>.size - MemoryLayout.size(ofValue: address.sun_path)
        guard let first = name.first, "/@".utf8.contains(first), start + name.count < MemoryLayout<sockaddr_un>.size
        else { return nil }
        withUnsafeMutableBytes(of: &address.sun_path) { path in
            path.copyBytes(from: name)
            // An abstract name begins with a NUL.
            if first == UInt8(ascii: "@") { path[0] = 0 }
        }
        let sent = withUnsafePointer(to: address) { address in
            address.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                sendto(reserve, text, text.utf8.count, Int32(MSG_NOSIGNAL), $0, socklen_t(start + name.count))
            }
        }
        return sent < 0 ? -errno : 1
    }

    /// One line without control characters, so that a text cannot become an assignment of its own.
    static func line(_ text: String) -> String {
        var line = ""
        var room = statusLimit
        for character in text {
            let plain = character.unicodeScalars.contains(where: \.breaksLine) ? " " : character
            room -= plain.utf8.count
            guard room >= 0 else { break }
            line.append(plain)
        }
        return line
    }
}

extension Unicode.Scalar {
    /// Whether the scalar is a control character or one of Unicode's line terminators.
    var breaksLine: Bool {
        if isASCII { return value < 0x20 || value == 0x7F }
        return [.control, .lineSeparator, .paragraphSeparator].contains(properties.generalCategory)
    }
}
