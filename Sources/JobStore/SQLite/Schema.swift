import GRDB
import JobModel

/// The tables of the database, as numbered steps that only go forward.
///
/// A step is never changed once it was released: a database of any earlier version is brought up to date by the steps
/// that it has not seen, each in a transaction of its own.
enum Schema {
    /// "DFRD" in the header of the file, by which a database of another program is told apart.
    static let applicationID = 0x4446_5244
    static var version: Int { steps.count }
    /// What is added to the version in the header of a database whose pages have checksums (``PageChecks``), which the
    /// header says nowhere else. A deferd that knows none takes it for a newer version, and leaves it alone.
    static let checksMark = 1000

    static let steps = [one, two, three, four, five, six, seven, eight]

    /// Times are milliseconds since 1970. States are numbered in the order of `JobState.code`; 3 and up are terminal.
    ///
    /// `jobs_by_kind` answers every listing and counts all jobs. The others are partial, so that a job stands only in those
    /// that its present state needs: submitting and finishing are the hot path. Where many entries are passed over, an
    /// index holds also what the query compares with a constant, so that no row is read for them.
    private static let one = """
        CREATE TABLE jobs (
            id INTEGER PRIMARY KEY,
            owner INTEGER NOT NULL,
            queue TEXT NOT NULL,
            state INTEGER NOT NULL,
            is_child INTEGER NOT NULL,
            source TEXT NOT NULL,
            priority INTEGER NOT NULL,
            link INTEGER NOT NULL,
            attempt INTEGER NOT NULL,
            children INTEGER NOT NULL,
            created_at INTEGER NOT NULL,
            not_before INTEGER,
            deadline_at INTEGER,
            started_at INTEGER,
            finished_at INTEGER,
            link_started_at INTEGER,
            stop TEXT,
            host TEXT,
            key TEXT,
            parent INTEGER,
            parent_link INTEGER,
            parent_index INTEGER,
            parent_depth INTEGER,
            carried TEXT,
            last_failure TEXT,
            checkpoint TEXT,
            outcomes TEXT,
            spec TEXT
        ) STRICT;
        CREATE INDEX jobs_by_kind ON jobs (owner, queue, state, is_child, source);
        CREATE INDEX jobs_ready ON jobs (queue, priority DESC, id, host, state) WHERE state = 1;
        CREATE INDEX jobs_ready_by_host ON jobs (queue, host, priority DESC, id, state) WHERE state = 1;
        CREATE INDEX jobs_due ON jobs (not_before) WHERE state = 0;
        CREATE INDEX jobs_by_deadline ON jobs (deadline_at) WHERE state < 3 AND deadline_at IS NOT NULL;
        CREATE INDEX jobs_finished ON jobs (finished_at, id, state, parent) WHERE state >= 3 AND parent IS NULL;
        CREATE INDEX jobs_by_parent ON jobs (parent, parent_link, parent_index) WHERE parent IS NOT NULL;
        CREATE UNIQUE INDEX jobs_by_key ON jobs (owner, key) WHERE key IS NOT NULL;

        CREATE TABLE large_specs (job INTEGER PRIMARY KEY, spec TEXT NOT NULL) STRICT;

        CREATE TABLE tags (job INTEGER NOT NULL, tag TEXT NOT NULL, PRIMARY KEY (job, tag)) STRICT, WITHOUT ROWID;
        CREATE INDEX tags_by_tag ON tags (tag, job);

        CREATE TABLE notes (
            job INTEGER NOT NULL, link INTEGER NOT NULL, note TEXT NOT NULL, PRIMARY KEY (job, link)
        ) STRICT, WITHOUT ROWID;

        CREATE TABLE downloads (number INTEGER PRIMARY KEY AUTOINCREMENT, path TEXT NOT NULL UNIQUE, record TEXT NOT NULL) STRICT;

        CREATE TABLE queues (
            name TEXT PRIMARY KEY, concurrency INTEGER NOT NULL, is_suspended INTEGER NOT NULL
        ) STRICT, WITHOUT ROWID;

        CREATE TABLE state (name TEXT PRIMARY KEY, value INTEGER NOT NULL) STRICT, WITHOUT ROWID;
        INSERT INTO state VALUES ('last_job', 0), ('probes', 0);
        """

    /// Sizes are what `Job.storedSize` says, so that sums of them are what the daemon counts. They stand in `jobs_by_kind`
    /// behind the ids, which keep the jobs of one kind in order.
    ///
    /// A child with an `item` is made of that and its link's template; an empty item means that it is in `large_specs`.
    /// A job that waits for its list is `gated`, and ready only when it no longer is.
    private static let two = """
        ALTER TABLE jobs ADD COLUMN crashes INTEGER NOT NULL DEFAULT 0;
        ALTER TABLE jobs ADD COLUMN gated INTEGER NOT NULL DEFAULT 0;
        ALTER TABLE jobs ADD COLUMN size INTEGER NOT NULL DEFAULT 0;
        ALTER TABLE jobs ADD COLUMN item TEXT;
        ALTER TABLE queues ADD COLUMN per_user INTEGER;

        DROP INDEX jobs_by_kind;
        DROP INDEX jobs_ready;
        DROP INDEX jobs_ready_by_host;
        UPDATE jobs SET size = stored_size(
            coalesce(spec, (SELECT spec FROM large_specs WHERE job = jobs.id)), carried, outcomes);
        CREATE INDEX jobs_by_kind ON jobs (owner, queue, state, is_child, source, id, size);
        CREATE INDEX jobs_ready ON jobs (queue, owner, priority DESC, id, host, state, gated)
            WHERE state = 1 AND gated = 0;
        CREATE INDEX jobs_ready_by_host ON jobs (queue, owner, host, priority DESC, id, state, gated)
            WHERE state = 1 AND gated = 0;
        CREATE INDEX jobs_gated ON jobs (parent, parent_link, parent_index, state, gated) WHERE state = 1 AND gated = 1;

        CREATE TABLE templates (
            parent INTEGER NOT NULL, link INTEGER NOT NULL, size INTEGER NOT NULL, template TEXT NOT NULL,
            PRIMARY KEY (parent, link)
        ) STRICT;
        """

    /// Long outcomes stand in parts (`LongOutcome`) and not in the row.
    ///
    /// A job without a host stands in one index of ready jobs and not in two: `jobs_ready_by_host` has those without a host
    /// in their starting order as well. That order ends with the id, which each entry has behind its columns.
    private static let three = """
        DROP INDEX jobs_ready;
        DROP INDEX jobs_ready_by_host;
        CREATE INDEX jobs_ready ON jobs (queue, owner, priority DESC, id, host, state, gated)
            WHERE state = 1 AND gated = 0 AND host IS NOT NULL;
        CREATE INDEX jobs_ready_by_host ON jobs (queue, owner, host, state, gated, priority DESC)
            WHERE state = 1 AND gated = 0;

        CREATE TABLE long_outcomes (
            job INTEGER NOT NULL, part INTEGER NOT NULL, text BLOB NOT NULL, PRIMARY KEY (job, part)
        ) STRICT;
        INSERT INTO long_outcomes (job, part, text)
            WITH RECURSIVE parts (job, part, size) AS (
                SELECT id, 0, length(CAST(carried AS BLOB)) FROM jobs
                WHERE id IN (SELECT id FROM jobs INDEXED BY jobs_by_kind WHERE size > 1048576)
                AND length(CAST(carried AS BLOB)) > 1048576
                UNION ALL SELECT job, part + 1, size FROM parts WHERE (part + 1) * 262144 < size
            ) SELECT job, part,
                substr(CAST((SELECT carried FROM jobs WHERE id = job) AS BLOB), part * 262144 + 1, 262144) FROM parts;
        UPDATE jobs SET carried = NULL WHERE id IN (SELECT job FROM long_outcomes);
        """

    /// Finished jobs are purged by owner, so that nobody's go because of another's.
    private static let four = """
        DROP INDEX jobs_finished;
        CREATE INDEX jobs_finished ON jobs (owner, finished_at, id, state, parent)
            WHERE state >= 3 AND parent IS NULL;
        """

    /// The sizes of bodies in files, which count as stored (``StoredBodies``).
    private static let five = "ALTER TABLE jobs ADD COLUMN bodies TEXT;"

    /// Schedules (`ScheduleRow`), with their specs beside them.
    private static let six = """
        CREATE TABLE schedules (
            owner INTEGER NOT NULL,
            name TEXT NOT NULL,
            calendar TEXT,
            zone TEXT,
            every INTEGER,
            catch_up TEXT NOT NULL,
            overlap TEXT NOT NULL,
            is_suspended INTEGER NOT NULL,
            set_at INTEGER NOT NULL,
            done_until INTEGER NOT NULL,
            last_time INTEGER,
            last_job INTEGER,
            submitted INTEGER NOT NULL,
            skipped INTEGER NOT NULL,
            waiting TEXT,
            spec_size INTEGER NOT NULL,
            PRIMARY KEY (owner, name)
        ) STRICT, WITHOUT ROWID;
        CREATE TABLE schedule_specs (
            owner INTEGER NOT NULL, name TEXT NOT NULL, spec TEXT NOT NULL, PRIMARY KEY (owner, name)
        ) STRICT;
        """

    /// A listing by tag passes over no job of another owner, of whom it would tell by the time that it takes.
    private static let seven = """
        ALTER TABLE tags ADD COLUMN owner INTEGER NOT NULL DEFAULT 0;
        UPDATE tags SET owner = coalesce((SELECT owner FROM jobs WHERE id = job), 0);
        CREATE INDEX tags_by_owner ON tags (owner, tag, job);
        """

    /// The groups of the processes that submit (`CallerGroups`).
    private static let eight = """
        ALTER TABLE jobs ADD COLUMN caller_groups TEXT;
        ALTER TABLE schedules ADD COLUMN caller_groups TEXT;
        """

    /// What a job's texts as version 1 stored them take up; an unreadable text counts by its length.
    private static let storedSize = DatabaseFunction("stored_size", argumentCount: 3, pure: true) { values in
        func json(_ text: String) -> JSON? {
            var text = text
            return text.withUTF8 { JobRow.value(UnsafeRawBufferPointer($0)) }?.value
        }
        func size(_ text: String) -> Int64 { Int64(json(text)?.size ?? text.utf8.count) }
        let texts = values.map { String.fromDatabaseValue($0) }
        var sum = Job.rowSize + (texts[0].map(size) ?? 0) + (texts[1].map(size) ?? 0)
        for outcome in texts[2].flatMap(json)?.array ?? [] {
            sum += LinkOutcome.storedSize(isSuccess: outcome["error"] == nil)
        }
        return sum
    }

    /// The version that the database has; 0 for one without tables.
    static func version(of connection: Database) throws -> Int {
        try (Int.fetchOne(connection, sql: "PRAGMA user_version") ?? 0) % checksMark
    }

    /// Carries out the steps that the database has not seen; `bodies` is the directory of large bodies.
    static func migrate(_ connection: Database, bodies: String? = nil) throws {
        connection.add(function: storedSize)
        defer { connection.remove(function: storedSize) }
        let mark = PageChecks.areThere(in: connection) ? checksMark : 0
        for number in try version(of: connection)..<max(version, try version(of: connection)) {
            try connection.inTransaction(.immediate) {
                try PageChecks.allowingEmptyPages(in: connection) { try connection.execute(sql: steps[number]) }
                if number + 1 == 5, let bodies { try StoredBodies.count(in: bodies, connection) }
                try connection.execute(
                    sql: "PRAGMA application_id = \(applicationID); PRAGMA user_version = \(number + 1 + mark)")
                return .commit
            }
        }
    }

    /// The name of a table or index that the database should have at `version` but has not.
    static func missing(from connection: Database, version: Int) throws -> String? {
        let definitions = "SELECT name, sql FROM sqlite_schema WHERE sql IS NOT NULL ORDER BY name"
        let model = try DatabaseQueue()
        defer {
            try? model.close()
            ClosedDatabases.keep(model)
        }
        let wanted = try model.write { model in
            model.add(function: storedSize)
            for step in steps[..<version] { try model.execute(sql: step) }
            return try Row.fetchAll(model, sql: definitions)
        }
        let found = try Row.fetchAll(connection, sql: definitions)
        return wanted.first { !found.contains($0) }?[0]
    }
}
