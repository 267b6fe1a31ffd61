import ArgumentParser
import JobModel
import Testing

@testable import DeferctlCommands

@Suite struct CompletionTests {
    @Test func candidate_isWrittenAsEachShellReadsIt() {
        let candidate = Candidate(word: "a:b", description: "running https://example.org/\u{1B}[31m")
        #expect(candidate.line(for: .zsh) == "a\\:b:running https://example.org/\\x1b[31m")
        #expect(candidate.line(for: .fish) == "a:b\trunning https://example.org/\\x1b[31m")
        #expect(candidate.line(for: .bash) == "a:b")
    }

    @Test(arguments: ["$(reboot)", "`reboot`", "a b", "a;b", "~root", "*", "$HOME", "'", "é"])
    func candidate_isNotOfferedInBash_whereItWouldBeExpanded(word: String) {
        #expect(Candidate(word: word).line(for: .bash) == nil)
        #expect(Candidate(word: word).line(for: .fish) == word + "\t")
    }

    @Test(arguments: ["", "a\nb", "a\u{1B}b", "a\tb"]) func candidate_isNotOffered_whereItIsNoPlainText(word: String) {
        for shell in CompletionShell.allCases {
            #expect(Candidate(word: word).line(for: shell) == nil)
        }
    }

    @Test func commands_arePrograms_thenPaths() {
        #expect(CommandCompletion.candidates(for: "s", isProgram: true, path: "/bin").isSuperset(of: ["sh", "sleep"]))
        #expect(CommandCompletion.candidates(for: "/bin/s", isProgram: true).contains("/bin/sh"))
        #expect(CommandCompletion.candidates(for: "/etc/pass", isProgram: false).contains("/etc/passwd"))
        #expect(CommandCompletion.candidates(for: "/no/such/", isProgram: false).isEmpty)
    }

    @Test(arguments: [
        (["deferctl", "--socket", "/s", "show"], "/s"), (["deferctl", "show", "--socket=/a b"], "/a b"),
        (["deferctl", "show", "--socket"], nil), (["deferctl"], nil),
    ])
    func socket_isTheOneThatWasTyped(words: [String], path: String?) {
        #expect(LiveCompletion.socket(words) == path)
    }
}
