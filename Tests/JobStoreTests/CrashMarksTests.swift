import Foundation
import JobModel
import TestSupport
import Testing

@testable import JobStore

@Suite struct CrashMarksTests {
    let directory: TemporaryDirectory
    private var path: String { directory.path + "/marks" }

    init() throws {
        directory = try TemporaryDirectory()
        try FileManager.default.createDirectory(atPath: directory.path, withIntermediateDirectories: true)
    }

    private func open(boot: String = "boot") -> CrashMarks {
        CrashMarks(path, boot: boot) { Issue.record($0) }
    }

    @Test func marks_outliveWhoMadeThem() {
        let marks = open()
        for job in [9, 2, 5] as [JobID] { marks.mark(job, isWorking: true) }
        marks.mark(2, isWorking: false)
        marks.mark(3, isWorking: false)
        #expect(open().jobs == [5, 9])
    }

    @Test func marks_areNone_afterAClear() {
        let marks = open()
        marks.mark(1, isWorking: true)
        marks.clear()
        marks.mark(2, isWorking: true)
        #expect(open().jobs == [])
    }

    @Test func marks_areNone_afterTheMachineWasStartedAnew() {
        open().mark(1, isWorking: true)
        #expect(open(boot: "other").jobs == [])
        #expect(open().jobs == [])
    }

    @Test(arguments: [
        Data(), Data("x".utf8), Data(repeating: 0xFF, count: 63), Data(repeating: 0xFF, count: 9_999),
        Data(repeating: 0, count: 4_096),
    ])
    func marks_areNone_whenTheFileIsGarbage(_ garbage: Data) throws {
        try garbage.write(to: URL(fileURLWithPath: path))
        let marks = open()
        #expect(marks.jobs == [])
        marks.mark(7, isWorking: true)
        #expect(open().jobs == [7])
    }

    @Test func marks_leaveOutWhatIsNone_behindAGoodHeader() throws {
        open().mark(7, isWorking: true)
        var bytes = try Data(contentsOf: URL(fileURLWithPath: path))
        // The same once more, a negative one, and half a slot at the end.
        for (slot, job) in [1: 7, 2: -1] as [Int: Int64] {
            withUnsafeBytes(of: job) { bytes.replaceSubrange(64 + 8 * slot..<72 + 8 * slot, with: $0) }
        }
        bytes += [1, 2, 3]
        try bytes.write(to: URL(fileURLWithPath: path))
        let marks = open()
        #expect(marks.jobs == [7])
        marks.mark(8, isWorking: true)
        #expect(open().jobs == [7, 8])
    }

    @Test func file_isAsLongAsTheMostMarksAtOnce() throws {
        let marks = open()
        for job in 1...100_000 as ClosedRange<JobID> {
            marks.mark(job, isWorking: true)
            if job > 1_000 { marks.mark(job - 1_000, isWorking: false) }
        }
        #expect(marks.jobs.count == 1_000)
        #expect(try Data(contentsOf: URL(fileURLWithPath: path)).count <= 64 + 8 * 1_002)
        #expect(open().jobs == marks.jobs)
    }

    @Test func marks_areNoMoreThanTheirBound() throws {
        let marks = open()
        for job in 1...JobID(CrashMarks.mostSlots + 10) { marks.mark(job, isWorking: true) }
        #expect(open().jobs.count == CrashMarks.mostSlots)
    }

    @Test func markOfTheLastLife_isGone_onceItsJobWasSaved() throws {
        let first = open()
        for job in [1, 2, 3] as [JobID] { first.mark(job, isWorking: true) }
        let second = open()
        #expect(second.jobs == [1, 2, 3])
        // One that works again is at risk again.
        second.mark(2, isWorking: true)
        try second.settle([1, 2].map { try Job.example().numbered($0) })
        #expect(second.jobs == [2, 3])
        #expect(open().jobs == [2, 3])
    }

    @Test func marksOfTheLastLife_areGone_butThoseToBeKept() throws {
        let first = open()
        for job in [1, 2, 3] as [JobID] { first.mark(job, isWorking: true) }
        let second = open()
        second.mark(4, isWorking: true)
        second.mark(3, isWorking: true)
        var kept = try Job.example(source: #"{"type": "value", "value": 1}"#, owner: 1, at: .after(0))
        kept.id = 2
        second.keepOfLastLife([kept])
        #expect(second.jobs == [2, 3, 4])
        #expect(open().jobs == [2, 3, 4])
    }

    @Test func marks_areDoneWithout_whenThereCanBeNoFile() throws {
        try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: true)
        nonisolated(unsafe) var reports = 0
        let marks = CrashMarks(path) { _ in reports += 1 }
        marks.mark(1, isWorking: true)
        #expect(marks.jobs == [])
        #expect(reports == 1)
    }
}
