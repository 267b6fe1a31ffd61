import GRDB
import JobModel

/// The tables of the database.
enum Schema {
    /// "DFRD" in the header of the file, which tells a database of another program apart.
    static let applicationID = 0x4446_5244
    static let version = 1

    /// A statement for each table and index. SQLite keeps their text, by which ``check(_:)`` knows them.
    ///
    /// Times are milliseconds since 1970. States are numbered in the order of `JobState.code`; 3 and up are terminal.
    static let definitions = jobs + besideJobs + schedules

    /// Columns that may hold long texts stand last, so that the others are read without them.
    ///
    /// A child with an `item` is made of that and its link's template; an empty item means that it is in `large_specs`.
    /// `bodies` has the sizes of bodies in files (``StoredBodies``), `caller_groups` the groups of the process that
    /// submitted (`CallerGroups`). `size` is what `Job.storedSize` says, so that sums of it are what the daemon counts.
    ///
    /// `jobs_by_kind` answers every listing and counts all jobs; the sizes stand in it behind the ids, which keep the jobs
    /// of one kind in order. The others are partial, so that a job stands only in those that its present state needs:
    /// submitting and finishing are the hot path. Where many entries are passed over, an index also holds what the query
    /// compares with a constant, so that no row is read for them.
    ///
    /// A job without a host stands in one index of ready jobs: `jobs_ready_by_host` has those without a host in their
    /// starting order as well, which ends with the id that each entry has behind its columns. A job that waits for its list
    /// is `gated`, and ready only when it no longer is.
    private static let jobs = [
        """
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
            crashes INTEGER NOT NULL DEFAULT 0,
            gated INTEGER NOT NULL DEFAULT 0,
            size INTEGER NOT NULL DEFAULT 0,
            caller_groups TEXT,
            bodies TEXT,
            item TEXT,
            spec TEXT,
            checkpoint TEXT,
            last_failure TEXT,
            outcomes TEXT,
            carried TEXT
        ) STRICT
        """,
        "CREATE INDEX jobs_by_kind ON jobs (owner, queue, state, is_child, source, id, size)",
        """
        CREATE INDEX jobs_ready ON jobs (queue, owner, priority DESC, id, host, state, gated)
            WHERE state = 1 AND gated = 0 AND host IS NOT NULL
        """,
        """
        CREATE INDEX jobs_ready_by_host ON jobs (queue, owner, host, state, gated, priority DESC)
            WHERE state = 1 AND gated = 0
        """,
        """
        CREATE INDEX jobs_gated ON jobs (parent, parent_link, parent_index, state, gated) WHERE state = 1 AND gated = 1
        """,
        "CREATE INDEX jobs_due ON jobs (not_before) WHERE state = 0",
        "CREATE INDEX jobs_by_deadline ON jobs (deadline_at) WHERE state < 3 AND deadline_at IS NOT NULL",
        """
        CREATE INDEX jobs_finished ON jobs (owner, finished_at, id, state, parent) WHERE state >= 3 AND parent IS NULL
        """,
        "CREATE INDEX jobs_by_parent ON jobs (parent, parent_link, parent_index) WHERE parent IS NOT NULL",
        "CREATE UNIQUE INDEX jobs_by_key ON jobs (owner, key) WHERE key IS NOT NULL",
    ]

    /// A listing by tag uses `tags_by_owner`, so that it passes over no job of another owner. Long outcomes stand in parts
    /// (`LongOutcome`) and not in the job's row.
    private static let besideJobs = [
        "CREATE TABLE large_specs (job INTEGER PRIMARY KEY, spec TEXT NOT NULL) STRICT",
        """
        CREATE TABLE tags (
            job INTEGER NOT NULL, tag TEXT NOT NULL, owner INTEGER NOT NULL DEFAULT 0, PRIMARY KEY (job, tag)
        ) STRICT, WITHOUT ROWID
        """,
        "CREATE INDEX tags_by_tag ON tags (tag, job)",
        "CREATE INDEX tags_by_owner ON tags (owner, tag, job)",
        """
        CREATE TABLE templates (
            parent INTEGER NOT NULL, link INTEGER NOT NULL, size INTEGER NOT NULL, template TEXT NOT NULL,
            PRIMARY KEY (parent, link)
        ) STRICT
        """,
        """
        CREATE TABLE long_outcomes (
            job INTEGER NOT NULL, part INTEGER NOT NULL, text BLOB NOT NULL, PRIMARY KEY (job, part)
        ) STRICT
        """,
        """
        CREATE TABLE notes (
            job INTEGER NOT NULL, link INTEGER NOT NULL, note TEXT NOT NULL, PRIMARY KEY (job, link)
        ) STRICT, WITHOUT ROWID
        """,
        """
        CREATE TABLE downloads (
            number INTEGER PRIMARY KEY AUTOINCREMENT, path TEXT NOT NULL UNIQUE, record TEXT NOT NULL
        ) STRICT
        """,
        """
        CREATE TABLE queues (
            name TEXT PRIMARY KEY, concurrency INTEGER NOT NULL, is_suspended INTEGER NOT NULL, per_user INTEGER
        ) STRICT, WITHOUT ROWID
        """,
        "CREATE TABLE state (name TEXT PRIMARY KEY, value INTEGER NOT NULL) STRICT, WITHOUT ROWID",
    ]

    /// Schedules (`ScheduleRow`), with their specs beside them.
    private static let schedules = [
        """
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
            caller_groups TEXT,
            PRIMARY KEY (owner, name)
        ) STRICT, WITHOUT ROWID
        """,
        """
        CREATE TABLE schedule_specs (
            owner INTEGER NOT NULL, name TEXT NOT NULL, spec TEXT NOT NULL, PRIMARY KEY (owner, name)
        ) STRICT
        """,
    ]

    /// Makes the tables, in one transaction.
    static let script = """
        BEGIN;
        \(definitions.joined(separator: ";\n"));
        INSERT INTO state VALUES ('last_job', 0), ('probes', 0);
        PRAGMA application_id = \(applicationID); PRAGMA user_version = \(version);
        COMMIT
        """

    /// The beginning of the definition of a table or index that the database should have but has not, such as
    /// "CREATE TABLE notes".
    static func missing(from connection: Database) throws -> String? {
        let found = try Set(String.fetchAll(connection, sql: "SELECT sql FROM sqlite_schema WHERE sql IS NOT NULL"))
        return definitions.first { !found.contains($0) }.map { String($0.prefix { $0 != "(" }.dropLast()) }
    }
}
