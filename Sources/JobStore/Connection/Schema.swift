import Glibc
import JobModel

/// The tables of the database.
///
/// Times of day are milliseconds since 1970, others milliseconds of the steady clock. States are numbered as in
/// `JobState.code`; 4 and up are terminal. Indexes are partial, so that a job is only in those that its state needs:
/// submitting and finishing are the hot path. An index of which many entries are passed over also has the columns that are
/// tested, so that SQLite reads no row for them. The blobs `submitted`, `life` and `record` have everything that no query asks
/// for (``ByteCoder``). A spec or item is in `text`, or in `documents` if it is long. Only a copy has parts of blobs. The
/// columns of the key come first in a table without row ids, as the integrity check of SQLite 3.40 mistakes one column for
/// another otherwise.
enum Schema {
    /// "DFRD" in the header of the file, which identifies a database of deferd.
    static let applicationID: Int64 = 0x4446_5244
    static let version: Int64 = 8

    /// Makes the database at `path` unless it exists, under another name until it is complete.
    static func makeIfMissing(_ path: String) throws(StoreError) {
        guard access(path, F_OK) != 0, errno == ENOENT else { return }
        // SQLite never leaves a log without its database, and would drop this one.
        guard StateDirectory.size(path + "-wal") == 0 else {
            throw StoreError.damaged(path, "it is missing, but its log is there")
        }
        let draft = path + ".new"
        // SQLite gives the files beside a database the same permissions.
        try StateDirectory.createFile(draft)
        // No daemon uses an incomplete draft, so it needs no journal, and is synced once. The first of the other settings
        // already writes.
        try SQLiteConnection(draft, errors: .write).execute(
            """
            PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF;
            PRAGMA auto_vacuum = INCREMENTAL; PRAGMA secure_delete = FAST;
            BEGIN; \(tables)
            PRAGMA application_id = \(applicationID); PRAGMA user_version = \(version); COMMIT;
            PRAGMA journal_mode = WAL
            """)
        guard StateDirectory.sync(draft), rename(draft, path) == 0, StateDirectory.sync(directoryOf: path) else {
            throw StoreError.unwritable(path)
        }
    }

    /// Throws unless the database is deferd's and of a known version.
    static func inspect(_ connection: SQLiteConnection) throws(StoreError) {
        guard try connection.number("PRAGMA application_id") == applicationID else {
            throw StoreError.damaged(connection.path, "it is of another program")
        }
        let found = try connection.number("PRAGMA user_version")
        guard found == version else { throw StoreError.otherVersion(connection.path, found) }
    }

    private static let tables = """
        CREATE TABLE jobs (
            id INTEGER PRIMARY KEY, owner INTEGER NOT NULL, queue TEXT NOT NULL, source INTEGER NOT NULL,
            priority INTEGER NOT NULL, key TEXT, digest INTEGER, parent INTEGER, parent_link INTEGER, list INTEGER,
            parent_index INTEGER, created_at INTEGER NOT NULL, keeps_key INTEGER NOT NULL, label TEXT,
            submitted BLOB NOT NULL, state INTEGER NOT NULL, waiting INTEGER NOT NULL, removing INTEGER NOT NULL,
            awaited INTEGER NOT NULL, crashes INTEGER NOT NULL, version INTEGER NOT NULL, link INTEGER NOT NULL,
            host TEXT, run_life INTEGER, due INTEGER, not_before INTEGER, deadline INTEGER, finished_at INTEGER,
            life BLOB NOT NULL, carried BLOB, text BLOB
        ) STRICT;
        CREATE INDEX jobs_listed ON jobs (owner, state, id, queue, source) WHERE parent IS NULL AND removing = 0;
        CREATE INDEX jobs_ready ON jobs (queue, owner, priority DESC, id, host)
            WHERE state = 1 AND waiting = 0 AND removing = 0;
        CREATE INDEX jobs_ready_by_host ON jobs (queue, owner, host, priority DESC)
            WHERE state = 1 AND waiting = 0 AND removing = 0;
        CREATE INDEX jobs_due ON jobs (due) WHERE state < 4 AND due IS NOT NULL AND removing = 0;
        CREATE INDEX jobs_due_by_wall ON jobs (not_before)
            WHERE state = 0 AND due IS NULL AND not_before IS NOT NULL AND removing = 0;
        CREATE INDEX jobs_by_deadline ON jobs (deadline) WHERE state < 4 AND deadline IS NOT NULL AND removing = 0;
        CREATE INDEX jobs_by_life ON jobs (run_life) WHERE run_life IS NOT NULL;
        CREATE INDEX jobs_suspected ON jobs (id) WHERE crashes > 0 AND state < 4;
        CREATE INDEX jobs_finished ON jobs (owner, finished_at)
            WHERE state >= 4 AND parent IS NULL AND removing = 0 AND awaited = 0;
        CREATE INDEX jobs_by_parent ON jobs (parent, list, parent_index) WHERE parent IS NOT NULL;
        CREATE INDEX jobs_unfinished_children ON jobs (parent, list) WHERE parent IS NOT NULL AND state < 4;
        CREATE INDEX jobs_gated ON jobs (parent, list) WHERE waiting = 1 AND state < 4;
        CREATE UNIQUE INDEX jobs_by_key ON jobs (owner, key)
            WHERE key IS NOT NULL AND (keeps_key = 1 OR state < 4);

        CREATE TABLE documents (job INTEGER PRIMARY KEY, text BLOB NOT NULL) STRICT;
        CREATE TABLE tags (
            owner INTEGER NOT NULL, tag TEXT NOT NULL, job INTEGER NOT NULL, PRIMARY KEY (owner, tag, job)
        ) STRICT, WITHOUT ROWID;
        CREATE TABLE blobs (
            life INTEGER NOT NULL, number INTEGER NOT NULL, job INTEGER NOT NULL, list_link INTEGER NOT NULL,
            size INTEGER NOT NULL, PRIMARY KEY (life, number, job, list_link)
        ) STRICT, WITHOUT ROWID;
        CREATE INDEX blobs_by_job ON blobs (job, list_link);
        CREATE TABLE blob_parts (
            life INTEGER NOT NULL, number INTEGER NOT NULL, part INTEGER NOT NULL, data BLOB NOT NULL,
            PRIMARY KEY (life, number, part)
        ) STRICT;

        CREATE TABLE lists (job INTEGER PRIMARY KEY, id INTEGER NOT NULL, record BLOB NOT NULL) STRICT;
        CREATE TABLE templates (
            job INTEGER NOT NULL, list INTEGER NOT NULL, link INTEGER NOT NULL, template BLOB NOT NULL,
            PRIMARY KEY (job, list)
        ) STRICT;

        CREATE TABLE dependencies (
            target INTEGER NOT NULL, job INTEGER NOT NULL, PRIMARY KEY (target, job)
        ) STRICT, WITHOUT ROWID;
        CREATE INDEX dependencies_by_job ON dependencies (job, target);

        CREATE TABLE checkpoints (
            job INTEGER NOT NULL, link INTEGER NOT NULL, text BLOB NOT NULL, PRIMARY KEY (job, link)
        ) STRICT, WITHOUT ROWID;
        CREATE TABLE downloads (number INTEGER PRIMARY KEY, path TEXT NOT NULL UNIQUE, record BLOB NOT NULL) STRICT;

        CREATE TABLE schedules (
            owner INTEGER NOT NULL, name TEXT NOT NULL, next INTEGER, last_job INTEGER, size INTEGER NOT NULL,
            record BLOB NOT NULL, spec BLOB, PRIMARY KEY (owner, name)
        ) STRICT;
        CREATE INDEX schedules_due ON schedules (next, owner, name) WHERE next IS NOT NULL;
        CREATE INDEX schedules_by_job ON schedules (last_job) WHERE last_job IS NOT NULL;

        CREATE TABLE queues (name TEXT PRIMARY KEY, record BLOB NOT NULL) STRICT, WITHOUT ROWID;
        CREATE TABLE counts (
            owner INTEGER NOT NULL, queue TEXT NOT NULL, state INTEGER NOT NULL, jobs INTEGER NOT NULL,
            bytes INTEGER NOT NULL, PRIMARY KEY (owner, queue, state)
        ) STRICT, WITHOUT ROWID;
        CREATE TABLE work (
            id INTEGER PRIMARY KEY, kind INTEGER NOT NULL, job INTEGER NOT NULL, owner INTEGER NOT NULL,
            list INTEGER NOT NULL, position INTEGER NOT NULL, payload BLOB NOT NULL
        ) STRICT;
        CREATE INDEX work_by_owner ON work (owner) WHERE kind != 3;
        CREATE INDEX work_by_job ON work (job, kind);

        CREATE TABLE state (
            last_job INTEGER NOT NULL, last_number INTEGER NOT NULL, life INTEGER NOT NULL, anchor INTEGER,
            boot TEXT NOT NULL, settlements INTEGER NOT NULL, is_copy INTEGER NOT NULL
        ) STRICT;
        INSERT INTO state VALUES (0, 0, 0, NULL, '', 0, 0);
        """
}
