import JobClient
import JobModel
import Testing

@testable import DeferctlCommands

@Suite struct TopControlTests {
    private let jobs = [
        job(1, "running"), job(2, "held", ["label": "night run"]), job(3, "failed", ["queue": "slow"]),
    ]

    private func press(_ control: inout TopControl, _ text: String) -> [TopControl.Action] {
        Key.all(in: Array(text.utf8)).compactMap { control.press($0, on: jobs) }
    }

    @Test func keys_areRead() {
        #expect(
            Key.all(in: Array("\u{1B}[A\u{1B}OBq\u{1B}[3~é\r\u{7F}\u{1B}".utf8)) == [
                .up, .down, .character("q"), .character("é"), .enter, .backspace, .escape,
            ])
        #expect(Key.all(in: [0x1B, 0x5B, 0xFF, 0x01]) == [])
    }

    @Test func arrows_select_andKeysAct() {
        var control = TopControl()
        #expect(press(&control, "c").isEmpty && control.selected == 1, "the first is selected before anything is done")
        #expect(press(&control, "\u{1B}[A\u{1B}[Bh") == [.change(2, .release)])
        #expect(press(&control, "\u{1B}[B\u{1B}[B\u{1B}[Br") == [.change(3, .retry(from: .failed))])
        #expect(press(&control, "\u{1B}[Ac").isEmpty && control.mode == .cancels(2))
        #expect(press(&control, "n").isEmpty && control.mode == .jobs)
        #expect(press(&control, "cy") == [.change(2, .cancel)])
        #expect(press(&control, "\u{1B}[Ah") == [.change(1, .hold)])
        #expect(press(&control, "o") == [.output(1)] && control.mode == .output(1))
        #expect(press(&control, "x?q") == [.quit])
    }

    @Test func filter_isTyped_andTakenBack() {
        let sample = TopSample(stats: [:], queues: [], jobs: [jobs[0]], others: Array(jobs[1...]))
        var control = TopControl()
        #expect(press(&control, "/NIGHTx\u{7F}").isEmpty && control.prompt == "/NIGHT")
        #expect(control.shown(of: sample).map(\.id) == [2])
        #expect(press(&control, "\rq") == [.quit])
        _ = press(&control, "\u{1B}")
        #expect(control.shown(of: sample).map(\.id) == [1, 2, 3])
        _ = press(&control, "/slow\r")
        #expect(control.shown(of: sample).map(\.id) == [3])
    }

    @Test(arguments: [60, 200]) func screens_fit(columns: Int) {
        var view = TopView(output: (1, "a\nb\u{1B}\n"))
        view.append(TopSample(stats: ["uptime": 1], queues: [], jobs: [jobs[0]], others: Array(jobs[1...])))
        for keys in ["", "\u{1B}[B", "?", "o", "oo", "/x", "cc"] {
            var control = TopControl()
            _ = press(&control, keys)
            let lines = TopPage(format: TextFormat()).lines(
                view, control, now: noon, size: ScreenSize(columns: columns, rows: 12))
            #expect(lines.count == 12 && lines.allSatisfy { $0.columns <= columns })
            #expect(!lines.joined().contains("\u{1B}"))
            #expect(lines.last?.hasPrefix(control.prompt) == true)
            if keys == "oo" { #expect(lines[..<3] == ["output of job 1", "a", "b\\x1b"]) }
        }
    }
}
