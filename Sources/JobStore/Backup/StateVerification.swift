import GRDB
import Glibc
package import JobModel
import SystemPackage

/// Looks for what is wrong with a state that no daemon has open, or with a backup: each page, each index, and what must hold
/// between the rows. It changes no byte, but that it undoes what a killed daemon left half done (``HotJournal``).
package struct StateVerification {
    /// Beyond so many it has been said that all is not well.
    private static let mostFlaws = 100

    /// The database's file.
    package let database: String
    package private(set) var jobs = 0
    /// What the jobs take up, in bytes.
    package private(set) var bytes: Int64 = 0
    /// What is wrong, in sentences.
    package private(set) var flaws: [String] = []
    /// Whether an older deferd made it, so that its rows could not be looked at.
    package private(set) var isOlder = false

    private let bodies: String?

    /// `path` is a state directory, or a backup.
    package init(of path: String) throws(StoreError) {
        DeferdVFS.register
        var status = stat()
        let isDirectory = stat(path, &status) == 0 && status.st_mode & S_IFMT == S_IFDIR
        database = isDirectory ? path + "/deferd.db" : path
        bodies = isDirectory ? path + "/bodies" : nil
        let lock = isDirectory ? open(path + "/deferd.lock", O_RDONLY | O_CLOEXEC | O_NOFOLLOW) : -1
        defer { if lock >= 0 { close(lock) } }
        if lock >= 0, flock(lock, LOCK_SH | LOCK_NB) != 0, errno == EWOULDBLOCK {
            throw StoreError(
                .locked,
                "The state directory \(path) is in use by a deferd; look at a backup, made with deferctl backup, or end it."
            )
        }
        do throws(StoreError) {
            guard try DatabaseInspection.finds(database, checkingUpTo: .max) else {
                throw StoreError(
                    .read, "There is no database \(database); name a state directory or a backup.", isLasting: true)
            }
        } catch {
            guard error.code == .damaged else { throw error }
            flaws.append(error.message)
            return
        }
        try DatabaseInspection.leavingNothingBehind(of: database) { () throws(StoreError) in try look() }
    }

    private mutating func look() throws(StoreError) {
        do {
            var configuration = Configuration()
            configuration.readonly = true
            let hasChecks = try DatabaseHeader(of: database)?.hasChecks == true
            configuration.prepareDatabase { if hasChecks { try PageChecks.expect($0) } }
            let queue = try DatabaseQueue(path: database, configuration: configuration)
            try queue.read { connection in
                for flaw in try String.fetchAll(connection, sql: "PRAGMA integrity_check(\(Self.mostFlaws))")
                where flaw != "ok" {
                    add("SQLite finds: \(flaw)")
                }
                isOlder = try Schema.version(of: connection) < Schema.version
                if !isOlder { try lookAtRows(connection) }
            }
            try queue.close()
        } catch {
            let error = StoreError(.read, error, database: database)
            guard error.code == .damaged else { throw error }
            add(error.message)
        }
    }

    private mutating func add(_ flaw: String) {
        if flaws.count < Self.mostFlaws { flaws.append(flaw) }
    }

    private mutating func lookAtRows(_ connection: Database) throws {
        let unreadable = UnreadableJobs { _ in }
        let reader = Reader(connection: connection, unreadable: unreadable)
        let select = try reader.statement(JobRow.select)
        let page = try reader.statement("SELECT id, size FROM jobs WHERE id > ?1 ORDER BY id LIMIT 1000")
        var last = JobID.min
        while true {
            page.bind(last, at: 1)
            let rows = try page.rows { (id: $0.integer(0), size: $0.integer(1)) }
            guard let end = rows.last else { break }
            last = end.id
            for row in rows {
                jobs += 1
                bytes = bytes.saturatingAdding(row.size)
                select.bind(row.id, at: 1)
                do throws(StoreError) {
                    let job = try Result { () throws in
                        try select.row { try JobRow.job($0, withLongResult: false, reader.templates, connection) }
                    }.mapError { StoreError(.read, $0, database: database) }.get()
                    if let job { try look(at: job, size: row.size, connection) }
                } catch {
                    add(error.message)
                }
            }
        }
        for (sentence, sql) in Self.rules {
            for id in try Int64.fetchAll(connection, sql: "\(sql) LIMIT 10") { add("Job \(id) \(sentence).") }
        }
        for row in try Row.fetchAll(connection, sql: Self.strangeSchedules) {
            let (owner, name): (Int64, String) = (row[0], row[1])
            add("The schedule \"\(name.echoed)\" of user \(owner) has a spec of another size, or none.")
        }
        let given = try Int64.fetchOne(connection, sql: "SELECT value FROM state WHERE name = 'last_job'")
        if given == nil { add("The id of the last job is missing.") }
    }

    /// What no row may be, and how such ones are found.
    private static let rules = [
        ("is over, but it is not known since when", "SELECT id FROM jobs WHERE state >= 3 AND finished_at IS NULL"),
        (
            "waits for a time, but it is not known for which",
            "SELECT id FROM jobs WHERE state = 0 AND not_before IS NULL"
        ),
        (
            "is a child of a job that is not there",
            "SELECT id FROM jobs AS child WHERE parent IS NOT NULL "
                + "AND NOT EXISTS (SELECT 1 FROM jobs WHERE id = child.parent)"
        ),
        (
            "has tags but is not there",
            "SELECT DISTINCT job FROM tags WHERE NOT EXISTS (SELECT 1 FROM jobs WHERE id = job)"
        ),
        (
            "has a spec but is not there",
            "SELECT job FROM large_specs WHERE NOT EXISTS (SELECT 1 FROM jobs WHERE id = job)"
        ),
        (
            "has a result but is not there",
            "SELECT DISTINCT job FROM long_outcomes WHERE NOT EXISTS (SELECT 1 FROM jobs WHERE id = job)"
        ),
        (
            "has children's templates but is not there",
            "SELECT DISTINCT parent FROM templates WHERE NOT EXISTS (SELECT 1 FROM jobs WHERE id = templates.parent)"
        ),
    ]

    private static let strangeSchedules = """
        SELECT owner, name FROM schedules WHERE spec_size IS NOT (SELECT length(CAST(spec AS BLOB)) FROM schedule_specs
            WHERE schedule_specs.owner = schedules.owner AND schedule_specs.name = schedules.name) LIMIT 10
        """

    /// What a job's row says of it, beside what can be read at all.
    private mutating func look(at job: Job, size: Int64, _ connection: Database) throws(StoreError) {
        // Older versions counted what is around a result otherwise, by a few bytes.
        if size < job.storedSize.saturatingSubtracting(Job.rowSize)
            || size > job.storedSize.saturatingAdding(Job.rowSize)
        {
            add("Job \(job.id) counts for \(size) bytes, but takes up \(job.storedSize).")
        }
        guard job.state == .succeeded, case .success(let result) = job.carried, result["spilled"] == true,
            let link = job.outcomes.last(where: { $0.error == nil && !job.isFinally($0.link) })?.link,
            let wanted = job.bodies[link]
        else { return }
        let found = try sizeOfBody(of: job.id, link, connection)
        guard found != wanted else { return }
        add(
            "The body of job \(job.id) has \(found.map { "\($0) bytes" } ?? "no file"), but should have \(wanted) bytes; "
                + "retry or remove the job.")
    }

    private func sizeOfBody(of job: JobID, _ link: Int, _ connection: Database) throws(StoreError) -> Int? {
        if let bodies, let file = try ReadableFile("\(bodies)/\(job)-\(link)") { return file.length }
        do {
            guard try connection.tableExists(BackupBodies.table) else { return nil }
            return try Int.fetchOne(
                connection, sql: "SELECT sum(length(data)) FROM \(BackupBodies.table) WHERE job = ? AND link = ?",
                arguments: [job, link])
        } catch {
            throw StoreError(.read, error, database: database)
        }
    }
}

extension Job {
    /// Whether link `link` runs either way.
    fileprivate func isFinally(_ link: Int) -> Bool {
        link > 0 && spec.links.indices.contains(link - 1) && spec.links[link - 1].isFinally
    }
}
