package import JobModel
import JobStore

/// Keeps files in a table, a part in each row. Its connections are its own, so that long files do not delay reads of jobs.
package final class PostgreSQLBlobArchive: BlobArchive {
    private let pool: PostgreSQLPool

    /// Parts that one statement copies or removes, so that it ends in time.
    private static let step = 64
    /// Files that are looked at together.
    private static let page = 1000

    init(_ settings: PostgreSQLSettings) { pool = PostgreSQLPool(settings, count: 2, errors: .write) }

    /// Later calls fail.
    func close() { pool.close() }

    package func put(_ bytes: [UInt8], as part: Int, of blob: BlobReference) throws(StoreError) {
        try run(
            """
            INSERT INTO blob_parts VALUES ($1, $2, $3, $4) \
            ON CONFLICT (life, number, part) DO UPDATE SET data = excluded.data RETURNING 1
            """, [blob.life, blob.number, part, bytes])
    }

    package func part(_ part: Int, of blob: BlobReference) throws(StoreError) -> [UInt8] {
        try run(
            "SELECT data FROM blob_parts WHERE life = $1 AND number = $2 AND part = $3", [blob.life, blob.number, part]
        ).first?.bytes(0) ?? []
    }

    package func copy(_ blob: BlobReference, to new: BlobReference) throws(StoreError) {
        for first in stride(from: 0, to: blob.parts, by: Self.step) {
            let end = min(blob.parts, first + Self.step)
            let copied = try run(
                """
                INSERT INTO blob_parts SELECT $3, $4, part, data FROM blob_parts \
                WHERE life = $1 AND number = $2 AND part >= $5 AND part < $6 RETURNING 1
                """, [blob.life, blob.number, new.life, new.number, first, end])
            guard copied.count == end - first else {
                throw StoreError(.read, "The file \(blob.name) is not in the database; run its job again.")
            }
        }
    }

    package func remove(_ blobs: [BlobReference]) throws(StoreError) {
        let names = [PostgreSQLParameter.array(blobs.map(\.life)), PostgreSQLParameter.array(blobs.map(\.number))]
        var removed: PostgreSQLRows
        repeat {
            removed = try run(
                """
                DELETE FROM blob_parts WHERE ctid = ANY (ARRAY(SELECT found.ctid \
                FROM unnest($1::bigint[], $2::bigint[]) AS blob (life, number), LATERAL (\
                SELECT ctid FROM blob_parts WHERE (life, number) = (blob.life, blob.number) LIMIT \(Self.step)) AS found \
                LIMIT \(Self.step))) RETURNING 1
                """, names)
        } while removed.count == Self.step
    }

    package func removeUnused() throws(StoreError) -> Int {
        var (count, last): (Int, BlobReference?) = (0, nil)
        while true {
            let rows = try run(
                """
                SELECT life, number, \
                EXISTS (SELECT 1 FROM blobs WHERE blobs.life = found.life AND blobs.number = found.number) \
                FROM (SELECT DISTINCT life, number FROM blob_parts WHERE (life, number) > ($1, $2) AND \
                life NOT IN (SELECT life FROM deferd_lives WHERE NOT is_over) ORDER BY life, number LIMIT $3) AS found \
                ORDER BY life, number
                """, [last?.life ?? 0, last?.number ?? 0, Self.page])
            var unused: [BlobReference] = []
            for row in 0..<rows.count {
                let blob = BlobReference(life: rows[row].integer(0), number: rows[row].integer(1), size: 0)
                if rows[row].integer(2) == 0 { unused.append(blob) }
                last = blob
            }
            if !unused.isEmpty { try remove(unused) }
            count += unused.count
            if rows.count < Self.page { return count }
        }
    }

    @discardableResult
    private func run(_ sql: String, _ values: [(any Bindable)?]) throws(StoreError) -> PostgreSQLRows {
        try pool.run { connection throws(StoreError) in
            try connection.begin()
            let rows = try connection.rows(sql, values)
            try connection.commit()
            return rows
        }
    }
}
