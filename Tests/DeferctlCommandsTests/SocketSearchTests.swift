import Testing

@testable import DeferctlCommands

@Suite struct SocketSearchTests {
    private let own = "/run/user/1000/deferd/deferd.sock"

    private func search(_ environment: [String: String], existing: [String] = [], isRoot: Bool = true) -> SocketSearch {
        SocketSearch(environment: environment, isRoot: isRoot) { existing.contains($0) }
    }

    @Test func path_isTheFlags_beforeAllElse() throws {
        let search = search(
            ["DEFERD_SOCKET": "/b", "XDG_RUNTIME_DIR": "/run/user/1000"], existing: [own, SocketSearch.systemPath])
        #expect(try search.path(flag: "a") == "a")
        #expect(try search.path(flag: nil) == "/b")
    }

    @Test func path_isTheUsersOwn_whenThatExists() throws {
        let environment = ["XDG_RUNTIME_DIR": "/run/user/1000", "DEFERD_SOCKET": ""]
        #expect(try search(environment, existing: [own]).path(flag: nil) == own)
        #expect(try search(environment).path(flag: nil) == SocketSearch.systemPath)
        #expect(try search([:]).path(flag: nil) == SocketSearch.systemPath)
        #expect(try search(["XDG_RUNTIME_DIR": "relative"]).path(flag: nil) == SocketSearch.systemPath)
    }

    @Test func path_isRefused_whenNoSocketCanHaveIt() {
        let long = "/" + String(repeating: "x", count: 107)
        #expect(throws: CommandFailure.self) { try search([:]).path(flag: "") }
        let flag = #expect(throws: CommandFailure.self) { try search([:]).path(flag: long) }
        #expect(flag?.status == .usage)
        let variable = #expect(throws: CommandFailure.self) { try search(["DEFERD_SOCKET": long]).path(flag: nil) }
        #expect(variable?.status == .configuration)
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
