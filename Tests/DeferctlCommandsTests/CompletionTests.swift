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
        #expect(Candidate(word: word, description: "").line(for: .bash) == nil)
        #expect(Candidate(word: word, description: "").line(for: .fish) == word + "\t")
    }

    @Test(arguments: ["", "a\nb", "a\u{1B}b", "a\tb"]) func candidate_isNotOffered_whereItIsNoPlainText(word: String) {
        for shell in CompletionShell.allCases {
            #expect(Candidate(word: word, description: "").line(for: shell) == nil)
        }
    }

    @Test func commands_arePrograms_thenPaths() {
        #expect(CommandCompletion.candidates(for: "s", isProgram: true, path: "/bin").isSuperset(of: ["sh", "sleep"]))
        #expect(CommandCompletion.candidates(for: "/bin/s", isProgram: true).contains("/bin/sh"))
        #expect(CommandCompletion.candidates(for: "/etc/pass", isProgram: false).contains("/etc/passwd"))
        #expect(CommandCompletion.candidates(for: "/no/such/", isProgram: false).isEmpty)
    }

    @Test func tags_areCountedAndSorted() {
        let jobs = [job(1, "queued", ["tags": ["b", "a"]]), job(2, "queued", ["tags": ["b"]]), job(3, "queued")]
        #expect(
            LiveCompletion.tags(of: jobs) == [
                Candidate(word: "b", description: "2 jobs"), Candidate(word: "a", description: "1 job"),
            ])
    }

    @Test(arguments: [
        (["deferctl", "--socket", "/s", "show"], "/s"), (["deferctl", "show", "--socket='/a b'"], "/a b"),
        (["deferctl", "show", "--socket"], nil), (["deferctl"], nil),
    ])
    func socket_isTheOneThatWasTyped(words: [String], path: String?) {
        #expect(LiveCompletion.socket(words) == path)
    }
}
