import InMemoryStore
import JobModel

/// The tables of a store, with what tests look at.
struct TestStore {
    private var tables = MemoryTables()
    private(set) var marks: Set<JobID> = []
    /// The ids that were given to jobs so far.
    private var ids: ClosedRange<JobID> = 1...1

    mutating func write(_ write: StoreWrite) -> StoreWritten {
        let written = tables.write(write)
        switch written {
        case .submitted(let submissions):
            for case .created(let id) in submissions { ids = 1...id }
        case .numbered(let numbers): if let last = numbers.last { ids = 1...last }
        case .done, .removed: break
        }
        return written
    }

    func read(_ read: StoreRead) -> StoreRows { tables.read(read) }

    mutating func mark(_ job: JobID, isWorking: Bool) {
        tables.mark(job, isWorking: isWorking)
        if isWorking { marks.insert(job) } else { marks.remove(job) }
    }

    mutating func clearMarks() {
        tables.clearMarks()
        marks = []
    }

    subscript(id: JobID) -> Job? {
        guard case .jobs(let jobs) = tables.read(.jobs([id])) else { return nil }
        return jobs.first
    }

    /// Every job, by id.
    var all: [Job] {
        guard case .jobs(let jobs) = tables.read(.jobs(Array(ids))) else { return [] }
        return jobs
    }

    var recovery: StoredState {
        guard case .recovery(let state) = tables.read(.recovery) else { return StoredState() }
        return state
    }

    /// The children of a job, by link and index.
    func children(of parent: JobID) -> [Job] {
        all.filter { $0.parent?.job == parent }.sorted {
            ($0.parent?.link ?? 0, $0.parent?.index ?? 0) < ($1.parent?.link ?? 0, $1.parent?.index ?? 0)
        }
    }
}
