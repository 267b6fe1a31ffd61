import JobModel
import Testing

@testable import JobCore
@testable import JobEngine
@testable import JobServer

@Suite struct SequenceNumbersTests {
    @Test func numbers_growByJob_fromOne() {
        var numbers = SequenceNumbers()
        #expect([7, 7, 8, 7, 0, 8].map { numbers.next(for: $0) } == [1, 2, 1, 3, 1, 2])
    }

    @Test func numbers_beginAnew_onceAJobIsForgotten() {
        var numbers = SequenceNumbers()
        numbers.forget(7)
        for job in 1...3 as ClosedRange<JobID> { _ = numbers.next(for: job) }
        numbers.forget(2)
        numbers.forget(2)
        #expect([1, 2, 3].map { numbers.next(for: $0) } == [2, 1, 2])
    }

    /// The numbers of a batch of jobs, of which only so many find room.
    private func number(_ jobs: [JobID], atMost count: Int = .max, in numbers: inout SequenceNumbers) -> [JobID: Int] {
        var given: [JobID: Int] = [:]
        let lines = jobs.map { ProgressBatch.Text.Line(job: $0, end: 0) }
        numbers.number(lines, from: 0) { line, number in
            guard given.count < count else { return false }
            given[line.job] = number
            return true
        }
        return given
    }

    @Test func numbers_growByJob_alsoInBatches() {
        var numbers = SequenceNumbers()
        #expect(numbers.next(for: 5) == 1)
        #expect(number([2, 5, 9], in: &numbers) == [2: 1, 5: 2, 9: 1])
        #expect(number([5, 9], atMost: 1, in: &numbers) == [5: 3])
        #expect(numbers.next(for: 9) == 2, "one that is not used is not taken")
        #expect(number([1, 2, 7, 9], in: &numbers) == [1: 1, 2: 2, 7: 1, 9: 3])
        numbers.forget(2)
        #expect(number([1, 2, 5], in: &numbers) == [1: 2, 2: 1, 5: 4])
        #expect(number([], in: &numbers) == [:])
    }

    @Test func numbers_areThoseOfADictionary_whateverComes() {
        var generator = SystemRandomNumberGenerator()
        var numbers = SequenceNumbers()
        var expected: [JobID: Int] = [:]
        for _ in 0..<3000 {
            let job = JobID.random(in: 0..<50, using: &generator)
            switch Int.random(in: 0..<4, using: &generator) {
            case 0:
                numbers.forget(job)
                expected[job] = nil
            case 1:
                expected[job, default: 0] += 1
                #expect(numbers.next(for: job) == expected[job])
            default:
                let jobs = (0..<50).filter { _ in Int.random(in: 0..<3, using: &generator) == 0 } as [JobID]
                let count = Int.random(in: 0...jobs.count, using: &generator)
                for job in jobs.prefix(count) { expected[job, default: 0] += 1 }
                let given = number(jobs, atMost: count, in: &numbers)
                #expect(given == expected.filter { jobs.prefix(count).contains($0.key) })
            }
        }
    }
}
