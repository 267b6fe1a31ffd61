import Glibc
import Testing

@testable import Systemd

/// Each test is a process of its own, because libsystemd finds the socket in the environment.
@Suite struct ServiceNotifierTests {
    @Test func notifier_saysNothing_whenNobodyListens() async {
        await #expect(processExitsWith: .success) {
            unsetenv("NOTIFY_SOCKET")
            let notifier = ServiceNotifier()
            #expect(!notifier.isActive)
            try notifier.ready(status: "serving")
            try notifier.storeDescriptor(0, name: "deferd")
        }
    }

    @Test func notifier_sendsOneAssignmentALine_whenTheManagerListens() async {
        await #expect(processExitsWith: .success) {
            let socket = try NotificationSocket()
            let notifier = ServiceNotifier()
            #expect(notifier.isActive)

            try notifier.ready(status: "serving 3 jobs")
            #expect(try socket.receive().assignments == ["READY=1", "STATUS=serving 3 jobs"])
            try notifier.ready()
            #expect(try socket.receive().assignments == ["READY=1"])
            try notifier.status("idle")
            #expect(try socket.receive().assignments == ["STATUS=idle"])
            try notifier.stopping(status: "draining")
            #expect(try socket.receive().assignments == ["STOPPING=1", "STATUS=draining"])
            try notifier.watchdog()
            #expect(try socket.receive().assignments == ["WATCHDOG=1"])
            try notifier.mainPID(4711)
            #expect(try socket.receive().assignments == ["MAINPID=4711"])
            try notifier.failed(status: "no\nroom", errorNumber: 28, exitStatus: 75)
            #expect(try socket.receive().assignments == ["STATUS=no room", "ERRNO=28", "EXIT_STATUS=75"])
            try notifier.removeDescriptors(name: "listener")
            #expect(try socket.receive().assignments == ["FDSTOREREMOVE=1", "FDNAME=listener"])
        }
    }

    /// Else a daemon that has none for a while would be ended by its watchdog.
    @Test func notifier_tellsTheManager_whenThereAreNoDescriptors() async {
        await #expect(processExitsWith: .success) {
            let socket = try NotificationSocket()
            let notifier = ServiceNotifier()
            try notifier.ready()
            #expect(try socket.receive().assignments == ["READY=1"])
            var none = rlimit(rlim_cur: 0, rlim_max: 0)
            try #require(setrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &none) == 0)
            try #require(dup(0) < 0 && errno == EMFILE)
            try notifier.watchdog()
            #expect(try socket.receive().assignments == ["WATCHDOG=1"])
        }
    }

    @Test func reloading_carriesTheMonotonicTime_whenSent() async {
        await #expect(processExitsWith: .success) {
            let socket = try NotificationSocket()
            try ServiceNotifier().reloading()
            try ServiceNotifier().reloading()
            let times = try (0..<2).map { _ in
                let assignments = try socket.receive().assignments
                #expect(assignments.count == 2 && assignments[0] == "RELOADING=1")
                let time = try #require(assignments.last?.split(separator: "=").last.flatMap { Int($0) })
                #expect(assignments.last == "MONOTONIC_USEC=\(time)")
                return time
            }
            #expect(0 < times[0] && times[0] < times[1])
        }
    }

    @Test func status_isOneLine_cutBetweenCharacters() async {
        await #expect(processExitsWith: .success) {
            let socket = try NotificationSocket()
            try ServiceNotifier().status("job\nMAINPID=1\r\nREADY=1\u{2028}\0end")
            #expect(try socket.receive().assignments == ["STATUS=job MAINPID=1 READY=1  end"])
            try ServiceNotifier().status(String(repeating: "€", count: 5000))
            #expect(try socket.receive().assignments == ["STATUS=" + String(repeating: "€", count: 341)])
        }
    }

    @Test func storeDescriptor_passesTheDescriptorItself_whenTheManagerListens() async {
        await #expect(processExitsWith: .success) {
            let socket = try NotificationSocket()
            var ends: [Int32] = [0, 0]
            try #require(pipe(&ends) == 0)
            try ServiceNotifier().storeDescriptor(ends[0], name: "deferd")
            let notification = try socket.receive()
            #expect(notification.assignments == ["FDSTORE=1", "FDNAME=deferd"])
            try #require(notification.descriptors.count == 1)
            var sent = stat()
            var received = stat()
            try #require(fstat(ends[0], &sent) == 0 && fstat(notification.descriptors[0], &received) == 0)
            #expect(sent.st_ino == received.st_ino && notification.descriptors[0] != ends[0])
        }
    }

    @Test func notifier_throws_whenTheManagersSocketIsGone() async {
        await #expect(processExitsWith: .success) {
            setenv("NOTIFY_SOCKET", "/nonexistent/notify", 1)
            let error = #expect(throws: SystemdError.self) { try ServiceNotifier().ready(status: "serving") }
            #expect(error?.errorNumber == ENOENT)
            #expect(error?.description.contains("READY and STATUS") == true)
        }
    }
}
