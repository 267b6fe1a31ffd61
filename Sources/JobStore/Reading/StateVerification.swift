import Glibc
package import JobModel
import SystemPackage

/// Checks a backup, or a state that no daemon has open: each page, index and row, and the rules that connect rows and files.
/// It changes nothing.
package struct StateVerification {
    /// Further flaws are left out.
    private static let mostFlaws = 100

    /// The database's path.
    package let database: String
    package private(set) var jobs = 0
    /// The bytes of the jobs.
    package private(set) var bytes: Int64 = 0
    /// Sentences.
    package private(set) var flaws: [String] = []

    private let blobs: String?

    /// `path` is a state directory, or a backup.
    package init(of path: String) throws(StoreError) {
        var status = stat()
        let isDirectory = stat(path, &status) == 0 && status.st_mode & S_IFMT == S_IFDIR
        database = isDirectory ? path + "/deferd.db" : path
        blobs = isDirectory ? path + "/bodies" : nil
        let lock = isDirectory ? open(path + "/deferd.lock", O_RDONLY | O_CLOEXEC | O_NOFOLLOW) : -1
        defer { if lock >= 0 { close(lock) } }
        if lock >= 0, flock(lock, LOCK_SH | LOCK_NB) != 0, errno == EWOULDBLOCK {
            throw StoreError(
                .locked,
                "The state directory \(path) is in use by a deferd; look at a backup, made with deferctl backup, or end it."
            )
        }
        guard access(database, R_OK) == 0 else {
            throw StoreError(
                .read,
                "There is no database \(database) to read (\(Errno(rawValue: errno))); name a state directory or a backup.",
                isLasting: StoreError.isLasting(errno))
        }
        // SQLite makes the index of a log, and leaves it. Without a lock, it may be another's.
        let makesIndex = lock >= 0 && access(database + "-shm", F_OK) != 0
        defer { if makesIndex { unlink(database + "-shm") } }
        do {
            // Without a log, it makes nothing if it takes the file to be unchanging.
            let mode = access(database + "-wal", F_OK) == 0 ? "mode=ro" : "immutable=1"
            let name = database.replacing("%", with: "%25").replacing("?", with: "%3f").replacing("#", with: "%23")
            let connection = try SQLiteConnection(database, errors: .read, uri: "file:\(name)?\(mode)")
            try Schema.inspect(connection)
            for flaw in try connection.flaws(by: "integrity_check(\(Self.mostFlaws))") { add(flaw) }
            try look(connection)
        } catch {
            guard error.code == .damaged || !flaws.isEmpty else { throw error }
            add(error.message)
        }
    }

    private mutating func add(_ flaw: String) { if flaws.count < Self.mostFlaws { flaws.append(flaw) } }

    private mutating func look(_ connection: SQLiteConnection) throws(StoreError) {
        _ = try StateRow.read(connection)
        try connection.forEach("\(SQLiteJobReader.selectJobs) ORDER BY id") { row throws(StoreError) in
            guard let job = try? StoredJob(row) else {
                add("Job \(JobColumns.id(row)) makes no sense.")
                return true
            }
            jobs += 1
            bytes = bytes.saturatingAdding(job.row.size)
            for blob in job.references where try !isThere(blob, connection) {
                add("The file \(blob.name) of job \(job.row.id) is not there as a whole; retry or remove the job.")
            }
            return true
        }
        for (sentence, condition) in Self.rules {
            let found = try connection.rows("SELECT DISTINCT \(condition)", [], atMost: 10) { $0.integer(0) }
            for job in found { add("Job \(job) \(sentence).") }
        }
        try connection.forEach(StoredSchedule.select(longestSpec: .max)) { row in
            let (name, found) = (StoredSchedule.name(row), try? StoredSchedule(row))
            if let found, found.spec?.count != found.schedule.specSize {
                add("\(name) has a spec of another size, or none.")
            }
            if found == nil { add("\(name) makes no sense.") }
            return true
        }
    }

    private func isThere(_ blob: BlobReference, _ connection: SQLiteConnection) throws(StoreError) -> Bool {
        if let blobs, StateDirectory.size("\(blobs)/\(blob.name)") == blob.size { return true }
        let select = "SELECT sum(length(data)) FROM blob_parts WHERE life = ?1 AND number = ?2"
        return try connection.rows(select, [blob.life, blob.number], atMost: 1) { $0.optionalInteger(0) } == [blob.size]
    }

    /// Flaws, and queries for the jobs that have them. While a tree of jobs is being removed, its root may be gone first.
    private static let rules =
        [
            ("is over, but it is not known since when", "id FROM jobs WHERE state >= 4 AND finished_at IS NULL"),
            (
                "waits for a time, but it is not known for which",
                "id FROM jobs WHERE state = 0 AND waiting = 0 AND due IS NULL AND not_before IS NULL"
            ),
            ("has no spec", "id FROM jobs WHERE text IS NULL AND id NOT IN (SELECT job FROM documents)"),
            (
                "is a child of a job that is not there",
                "id FROM jobs WHERE parent NOT IN (SELECT id FROM jobs) AND NOT EXISTS (SELECT 1 FROM work)"
            ),
        ]
        + ["documents", "tags", "checkpoints", "blobs", "lists", "templates", "dependencies"].map { table in
            (
                "has \(table) but is not there",
                "job FROM \(table) WHERE job NOT IN (SELECT id FROM jobs) AND NOT EXISTS (SELECT 1 FROM work)"
            )
        }
}

extension StoredJob {
    /// The files that the job needs, which are synced before its row names them: not the output of programs.
    fileprivate var references: [BlobReference] {
        let outputs = row.blobs.filter(\.isOutput).map(\.blob)
        var found = row.references.filter { !outputs.contains($0) }
        if case .item(.file(let blob)) = document { found.append(blob) }
        if case .file(let blob) = template { found.append(blob) }
        return found
    }
}
