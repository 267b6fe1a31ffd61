import CSQLite
import GRDB
import Glibc
package import JobModel
import SystemPackage

/// Looks for what is wrong with a state that no daemon has open, or with a backup: each page, each index, and what must hold
/// between the rows. It changes no byte.
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

    private let bodies: String?

    /// `path` is a state directory, or a backup.
    package init(of path: String) throws(StoreError) {
        deferd_settle_database()
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
            guard try DatabaseHeader.check(database) else {
                throw StoreError(
                    .read, "There is no database \(database); name a state directory or a backup.", isLasting: true)
            }
        } catch {
            guard error.code == .damaged else { throw error }
            flaws.append(error.message)
            return
        }
        // A connection that reads leaves those that it makes.
        let made = ["-wal", "-shm"].map { database + $0 }.filter { access($0, F_OK) != 0 }
        defer { for file in made { unlink(file) } }
        try look()
    }

    /// The name by which SQLite can open the database. It reads a log by way of an index beside it, and makes one for every
    /// database that is used with a log. Where it cannot, on a disk that is mounted for reading only, a database without a
    /// log is opened as one that does not change.
    private func name() throws(StoreError) -> String {
        guard access(database + "-shm", F_OK) != 0, access(StateDirectory.directory(of: database), W_OK) != 0 else {
            return database
        }
        guard try DatabaseHeader.logLength(of: database) == 0 else {
            throw StoreError(
                .read,
                "The database \(database) has a log, which cannot be read where its directory cannot be written; give "
                    + "permission, or copy it and the files named \(database)-* elsewhere and name that.",
                isLasting: true)
        }
        let escaped = database.replacing("%", with: "%25").replacing("?", with: "%3f").replacing("#", with: "%23")
        return "file:\(escaped)?immutable=1"
    }

    private mutating func look() throws(StoreError) {
        do {
            var configuration = Configuration()
            configuration.readonly = true
            let queue = try DatabaseQueue(path: try name(), configuration: configuration)
            try queue.read { connection in
                for flaw in try String.fetchAll(connection, sql: "PRAGMA integrity_check(\(Self.mostFlaws))")
                where flaw != "ok" {
                    add("SQLite finds: \(flaw)")
                }
                if let missing = try Schema.missing(from: connection) {
                    add("The database \(database) is damaged: it does not have what \(missing) makes.")
                } else {
                    try lookAtRows(connection)
                }
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
                        try select.row { try JobRow.job($0, withLongResult: true, reader.templates, connection) }
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
        try lookAtSchedules(reader)
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

    private mutating func lookAtSchedules(_ reader: Reader) throws {
        let strange = try reader.statement("\(ScheduleRow.select) ORDER BY owner, name").rows { row in
            let name = "The schedule \"\((row.text(1) ?? "").echoed)\" of user \(row.integer(0))"
            guard let schedule = ScheduleRow.schedule(row)?.schedule else { return "\(name) makes no sense." }
            let spec = try reader.spec(of: schedule.key)
            return spec?.utf8.count == schedule.specSize ? nil : "\(name) has a spec of another size, or none."
        }
        strange.forEach { add($0) }
    }

    /// What a job's row says of it, beside what can be read at all.
    private mutating func look(at job: Job, size: Int64, _ connection: Database) throws(StoreError) {
        if size != job.storedSize {
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
