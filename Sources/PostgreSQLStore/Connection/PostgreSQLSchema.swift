import JobModel
import JobStore

/// The tables, which are those of SQLite, and one for parts of files, one for the lives of daemons and one for receipts of
/// rounds.
///
/// Names that users choose are `bytea`, as `text` refuses NUL; all texts compare by their bytes. JSON is `bytea` too, as
/// `jsonb` changes numbers.
enum PostgreSQLSchema {
    static let version: Int64 = 2
    /// Serializes the making of the schema ("DFRD" and 1).
    private static let lock: Int64 = 0x4446_5244_0000_0001

    /// Makes the schema if it is missing; throws if this deferd cannot use it.
    static func settle(_ connection: PostgreSQLConnection) throws(StoreError) {
        try connection.begin()
        try connection.send("SELECT pg_advisory_xact_lock(\(lock))")
        let found = try connection.rows(
            "SELECT to_regnamespace('deferd')::oid, to_regclass('deferd.deferd_schema')::oid")
        if found.first?.isNull(1) ?? true {
            if found.first?.isNull(0) ?? true { try connection.send("CREATE SCHEMA deferd") }
            // The version's row comes last, so that a schema with it is whole.
            for statement in tables.split(separator: ";") {
                try connection.send(String(statement))
                _ = try connection.finish()
            }
        } else {
            let versions = try connection.rows("SELECT version, oldest FROM deferd_schema")
            guard let row = versions.first, row.integer(0) >= version, row.integer(1) <= version else {
                throw StoreError(
                    .otherVersion,
                    "\(connection.name) has the schema deferd of version \(versions.first?.integer(0) ?? 0), but this deferd "
                        + "uses version \(version); start the deferd that made it, or name another database.",
                    isLasting: true)
            }
        }
        try connection.commit()
    }

    private static let tables = """
        CREATE TABLE jobs (
            id bigint PRIMARY KEY, owner bigint NOT NULL, queue text COLLATE "C" NOT NULL, source bigint NOT NULL,
            priority bigint NOT NULL, key bytea, digest bigint, parent bigint, parent_link bigint, list bigint,
            parent_index bigint, created_at bigint NOT NULL, keeps_key bigint NOT NULL, label bytea,
            submitted bytea NOT NULL, state bigint NOT NULL, waiting bigint NOT NULL, removing bigint NOT NULL,
            awaited bigint NOT NULL, crashes bigint NOT NULL, version bigint NOT NULL, link bigint NOT NULL,
            host text COLLATE "C", run_life bigint, due bigint, not_before bigint, deadline bigint, finished_at bigint,
            life bytea NOT NULL, carried bytea, node text COLLATE "C" NOT NULL
        );
        CREATE INDEX jobs_listed ON jobs (owner, state, id) WHERE parent IS NULL AND removing = 0;
        CREATE INDEX jobs_ready ON jobs (queue, owner, node, priority DESC, id) INCLUDE (host)
            WHERE state = 1 AND waiting = 0 AND removing = 0;
        CREATE INDEX jobs_due ON jobs (due) WHERE state < 4 AND due IS NOT NULL AND removing = 0;
        CREATE INDEX jobs_due_by_wall ON jobs (not_before)
            WHERE state = 0 AND due IS NULL AND not_before IS NOT NULL AND removing = 0;
        CREATE INDEX jobs_by_deadline ON jobs (deadline) WHERE state < 4 AND deadline IS NOT NULL AND removing = 0;
        CREATE INDEX jobs_by_life ON jobs (run_life, id) WHERE run_life IS NOT NULL;
        CREATE INDEX jobs_suspected ON jobs (id) WHERE crashes > 0 AND state < 4;
        CREATE INDEX jobs_finished ON jobs (finished_at, id)
            WHERE state >= 4 AND parent IS NULL AND removing = 0 AND awaited = 0;
        CREATE INDEX jobs_finished_by_owner ON jobs (owner, finished_at, id)
            WHERE state >= 4 AND parent IS NULL AND removing = 0 AND awaited = 0;
        CREATE INDEX jobs_by_parent ON jobs (parent, list, parent_index, id) WHERE parent IS NOT NULL;
        CREATE INDEX jobs_unfinished_children ON jobs (parent, list, id) WHERE parent IS NOT NULL AND state < 4;
        CREATE UNIQUE INDEX jobs_by_key ON jobs (owner, key)
            WHERE key IS NOT NULL AND (keeps_key = 1 OR state < 4);

        CREATE TABLE documents (job bigint PRIMARY KEY, text bytea NOT NULL);
        CREATE TABLE tags (owner bigint NOT NULL, tag bytea NOT NULL, job bigint NOT NULL, PRIMARY KEY (owner, tag, job));
        CREATE TABLE blobs (
            life bigint NOT NULL, number bigint NOT NULL, job bigint NOT NULL, list_link bigint NOT NULL,
            size bigint NOT NULL, PRIMARY KEY (life, number, job, list_link)
        );
        CREATE INDEX blobs_by_job ON blobs (job, list_link);
        CREATE TABLE blob_parts (
            life bigint NOT NULL, number bigint NOT NULL, part bigint NOT NULL, data bytea NOT NULL,
            PRIMARY KEY (life, number, part)
        );
        ALTER TABLE blob_parts ALTER COLUMN data SET STORAGE EXTERNAL;

        CREATE TABLE lists (job bigint PRIMARY KEY, id bigint NOT NULL, record bytea NOT NULL);
        CREATE TABLE templates (
            job bigint NOT NULL, list bigint NOT NULL, link bigint NOT NULL, template bytea NOT NULL,
            PRIMARY KEY (job, list)
        );
        CREATE TABLE dependencies (target bigint NOT NULL, job bigint NOT NULL, PRIMARY KEY (target, job));
        CREATE INDEX dependencies_by_job ON dependencies (job, target);
        CREATE TABLE checkpoints (
            job bigint NOT NULL, link bigint NOT NULL, text bytea NOT NULL, PRIMARY KEY (job, link)
        );
        CREATE TABLE downloads (path bytea PRIMARY KEY, number bigint NOT NULL UNIQUE, record bytea NOT NULL);

        CREATE TABLE schedules (
            owner bigint NOT NULL, name bytea NOT NULL, next bigint, last_job bigint, size bigint NOT NULL,
            record bytea NOT NULL, spec bytea, PRIMARY KEY (owner, name)
        );
        CREATE INDEX schedules_due ON schedules (next, owner, name) WHERE next IS NOT NULL;
        CREATE INDEX schedules_by_job ON schedules (last_job) WHERE last_job IS NOT NULL;

        CREATE TABLE queues (name text COLLATE "C" PRIMARY KEY, record bytea NOT NULL);
        CREATE TABLE counts (
            owner bigint NOT NULL, queue text COLLATE "C" NOT NULL, state bigint NOT NULL, jobs bigint NOT NULL,
            bytes bigint NOT NULL, changed bigint NOT NULL, PRIMARY KEY (owner, queue, state)
        );
        CREATE TABLE count_changes (
            number bigint NOT NULL, owner bigint NOT NULL, queue text COLLATE "C" NOT NULL, state bigint NOT NULL,
            jobs bigint NOT NULL, bytes bigint NOT NULL, PRIMARY KEY (number, owner, queue, state)
        );
        CREATE TABLE work (
            id bigint PRIMARY KEY, kind bigint NOT NULL, job bigint NOT NULL, owner bigint NOT NULL, list bigint NOT NULL,
            position bigint NOT NULL, payload bytea NOT NULL
        );
        CREATE INDEX work_by_owner ON work (owner, id) WHERE kind <> 3;
        CREATE INDEX work_by_job ON work (job, kind);

        CREATE TABLE deferd_lives (
            life bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, node text NOT NULL, instance text NOT NULL,
            version text, programs text, configuration text, started timestamptz NOT NULL DEFAULT now(),
            seen timestamptz NOT NULL DEFAULT now(), is_clean boolean NOT NULL DEFAULT false,
            is_over boolean NOT NULL DEFAULT false, is_taken boolean NOT NULL DEFAULT false,
            beat bigint NOT NULL DEFAULT 0, lease bigint NOT NULL DEFAULT 15000, steady bigint, boot text
        );
        CREATE UNIQUE INDEX deferd_lives_living ON deferd_lives (node) WHERE NOT is_over;
        CREATE TABLE news (
            number bigint PRIMARY KEY, life bigint NOT NULL, flags bigint NOT NULL, jobs bytea NOT NULL,
            work bytea NOT NULL, ready_priority bigint, ready_id bigint, due bigint
        );
        CREATE SEQUENCE rounds;
        CREATE TABLE deferd_receipts (life bigint NOT NULL, round bigint NOT NULL, PRIMARY KEY (life, round));
        CREATE TABLE steady (boot text PRIMARY KEY, anchor bigint NOT NULL);
        CREATE SEQUENCE job_ids;
        CREATE SEQUENCE numbers;
        CREATE TABLE deferd_schema (version bigint NOT NULL, oldest bigint NOT NULL);
        INSERT INTO deferd_schema VALUES (\(version), \(version))
        """
}

/// Numbers of a sequence, of which a round takes many in advance. Rounds of all nodes follow each other.
struct NumberBlock {
    private static let size: Int64 = 512

    let sequence: String
    private var free: Range<Int64> = 0..<0

    init(_ sequence: String) { self.sequence = sequence }

    /// Forgets the numbers taken in advance, as other nodes may have taken higher ones.
    mutating func forget() { free = 0..<0 }

    mutating func next(_ connection: PostgreSQLConnection) throws(StoreError) -> Int64 {
        if free.isEmpty {
            let last = try connection.rows(
                "SELECT setval('\(sequence)', nextval('\(sequence)') + $1 - 1)", [Self.size]
            ).number
            // JSON numbers are exact up to here.
            guard let last, (Self.size...1 << 53).contains(last) else {
                throw StoreError(
                    .damaged,
                    "\(connection.name) counts beyond any number of jobs; set its sequence \(sequence) back.")
            }
            free = last - Self.size + 1..<last + 1
        }
        let number = free.lowerBound
        free = number + 1..<free.upperBound
        return number
    }

    /// Gives back what is left, so that the next round of another node leaves no gap.
    mutating func giveBack(_ connection: PostgreSQLConnection) throws(StoreError) {
        guard !free.isEmpty else { return }
        try connection.send("SELECT setval('\(sequence)', $1)", [free.lowerBound - 1])
        forget()
    }
}
