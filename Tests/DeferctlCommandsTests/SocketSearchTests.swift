import Testing

@testable import DeferctlCommands

@Suite struct SocketSearchTests {
    private let own = "/run/user/1000/deferd/deferd.sock"

    private func search(_ environment: [String: String], existing: [String] = [], isRoot: Bool = true) -> SocketSearch {
        SocketSearch(environment: environment, isRoot: isRoot) { existing.contains($0) }
    }

    @Test func path_isTheFlags_beforeAllElse() {
        let search = search(
            ["DEFERD_SOCKET": "/b", "XDG_RUNTIME_DIR": "/run/user/1000"], existing: [own, SocketSearch.systemPath])
        #expect(search.location(flag: "a").path == "a")
        #expect(search.location(flag: nil).path == "/b")
    }

    @Test func path_isTheUsersOwn_whenThatExists() {
        let environment = ["XDG_RUNTIME_DIR": "/run/user/1000", "DEFERD_SOCKET": ""]
        #expect(search(environment, existing: [own]).location(flag: nil).path == own)
        #expect(search(environment).location(flag: nil).path == SocketSearch.systemPath)
        #expect(search([:]).location(flag: nil).path == SocketSearch.systemPath)
        #expect(search(["XDG_RUNTIME_DIR": "relative"]).location(flag: nil).path == SocketSearch.systemPath)
    }

    @Test func startHint_fitsTheSocket() {
        let search = search(["XDG_RUNTIME_DIR": "/run/user/1000"])
        #expect(search.startHint(for: SocketSearch.systemPath) == "Start it with: systemctl start deferd")
        let user = self.search([:], isRoot: false).startHint(for: SocketSearch.systemPath)
        #expect(user.hasPrefix("Start one of your own with: systemctl --user start deferd"))
        #expect(search.startHint(for: own) == "Start it with: systemctl --user start deferd, or: deferd &")
        #expect(search.startHint(for: "/tmp/x") == "Start it with: deferd --socket /tmp/x")
    }

    @Test(arguments: [
        (["LANG": "de_DE.UTF-8"], true), (["LANG": "C.utf8"], true), (["LANG": "C"], false), ([:], false),
        (["LANG": "C.UTF-8", "LC_ALL": "C"], false), (["LC_CTYPE": "C.UTF-8", "LANG": "C", "LC_ALL": ""], true),
    ])
    func console_isUnicode_whenTheLocaleSaysSo(variables: [String: String], isUnicode: Bool) {
        #expect(Console.isUnicode(variables) == isUnicode)
    }
}
