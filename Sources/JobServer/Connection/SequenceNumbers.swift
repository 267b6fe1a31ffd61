import JobCore
import JobEngine
import JobModel

/// The number of the last notification of each job in one watch.
///
/// Batches of progress come sorted by job and mostly have the same jobs as the batch before. So the numbers are kept in
/// the same order and both are walked side by side, without looking up any of them.
struct SequenceNumbers {
    private struct Entry {
        let job: JobID
        var last: Int
    }

    /// Jobs that have made progress, by ascending id.
    private var running: [Entry] = []
    private var others: [JobID: Int] = [:]

    /// The next number of a job, from 1 on.
    mutating func next(for job: JobID) -> Int {
        let row = row(of: job)
        guard row < running.count, running[row].job == job else {
            others[job, default: 0] += 1
            return others[job, default: 1]
        }
        running[row].last += 1
        return running[row].last
    }

    /// Begins from 1 again with a job.
    mutating func forget(_ job: JobID) {
        others[job] = nil
        let row = row(of: job)
        if row < running.count, running[row].job == job { running.remove(at: row) }
    }

    /// Calls `body` with each line from `first` on and its job's next number, until it is false, when the number is not
    /// used. The lines are by ascending job.
    mutating func number(
        _ lines: [ProgressBatch.Text.Line], from first: Int, _ body: (ProgressBatch.Text.Line, Int) -> Bool
    ) {
        guard first < lines.count else { return }
        if !areRunning(lines, from: first) { run(lines, from: first) }
        var row = row(of: lines[first].job)
        running.withUnsafeMutableBufferPointer { running in
            for index in first..<lines.count {
                let line = lines[index]
                while running[row].job < line.job { row += 1 }
                guard body(line, running[row].last + 1) else { return }
                running[row].last += 1
            }
        }
    }

    private func areRunning(_ lines: [ProgressBatch.Text.Line], from first: Int) -> Bool {
        var row = row(of: lines[first].job)
        for index in first..<lines.count {
            while row < running.count, running[row].job < lines[index].job { row += 1 }
            guard row < running.count, running[row].job == lines[index].job else { return false }
        }
        return true
    }

    /// Adds the jobs of the lines to those that make progress.
    private mutating func run(_ lines: [ProgressBatch.Text.Line], from first: Int) {
        var merged: [Entry] = []
        merged.reserveCapacity(running.count + lines.count - first)
        var row = 0
        for index in first..<lines.count {
            let job = lines[index].job
            while row < running.count, running[row].job < job {
                merged.append(running[row])
                row += 1
            }
            if row < running.count, running[row].job == job { continue }
            merged.append(Entry(job: job, last: others.removeValue(forKey: job) ?? 0))
        }
        merged += running[row...]
        running = merged
    }

    /// The first row whose job is not below `job`.
    private func row(of job: JobID) -> Int {
        var (low, high) = (0, running.count)
        while low < high {
            let middle = (low + high) / 2
            if running[middle].job < job { low = middle + 1 } else { high = middle }
        }
        return low
    }
}
