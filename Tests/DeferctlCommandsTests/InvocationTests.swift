import Testing

@testable import DeferctlCommands

@Suite struct InvocationTests {
    @Test func startHint_fitsTheSocket() {
        let system = DaemonSocket(flag: DaemonSocket.systemPath)
        #expect(system.startHint(isRoot: true) == "Start it with: systemctl start deferd")
        let user = system.startHint(isRoot: false)
        #expect(user.hasPrefix("Start one of your own with: systemctl --user start deferd"))
        #expect(DaemonSocket(flag: "/tmp/x").startHint() == "Start it with: deferd --socket /tmp/x")
        #expect(DaemonSocket(flag: "/tmp/x y").startHint() == "Start it with: deferd --socket '/tmp/x y'")
    }

    @Test func command_reachesTheSameDaemon() {
        #expect(DaemonSocket(flag: nil).command == "deferctl")
        #expect(DaemonSocket(flag: "/tmp/a_1.sock").command == "deferctl --socket /tmp/a_1.sock")
        #expect(DaemonSocket(flag: "/tmp/it's é").command == #"deferctl --socket '/tmp/it'\''s é'"#)
    }

    @Test(arguments: [
        (["LANG": "de_DE.UTF-8"], true), (["LANG": "C.utf8"], true), (["LANG": "C"], false), ([:], false),
        (["LANG": "C.UTF-8", "LC_ALL": "C"], false), (["LC_CTYPE": "C.UTF-8", "LANG": "C", "LC_ALL": ""], true),
    ])
    func console_isUnicode_whenTheLocaleSaysSo(variables: [String: String], isUnicode: Bool) {
        #expect(Console.isUnicode(variables) == isUnicode)
    }
}
