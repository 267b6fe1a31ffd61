#if canImport(PostgreSQLStore)
    import JobModel
    import PostgreSQLStore
    import TestSupport
    import Testing

    /// Files in a table of PostgreSQL.
    @Suite(.enabled(if: PostgreSQLCluster.programs != nil, "PostgreSQL is not installed.")) struct BlobArchiveTests {
        private let address: String
        private let store: PostgreSQLStore
        private let directory: TemporaryDirectory
        private var archive: PostgreSQLBlobArchive { store.archive }

        init() throws {
            address = try #require(PostgreSQLCluster.shared).makeDatabase()
            directory = try TemporaryDirectory()
            store = try PostgreSQLStore(
                PostgreSQLSettings(address: address, statementTimeout: 20), path: directory.path,
                node: NodeDescription(name: "test"))
        }

        /// A file with this many parts, the last of which is short.
        private func put(_ parts: Int, life: Int64 = 1, number: Int64) throws -> BlobReference {
            let size = Int64((parts - 1) * BlobReference.partSize + 3)
            let blob = BlobReference(life: life, number: number, size: size)
            for part in 0..<parts { try archive.put(Self.bytes(part, of: parts), as: part, of: blob) }
            return blob
        }

        private static func bytes(_ part: Int, of parts: Int) -> [UInt8] {
            let count = part == parts - 1 ? 3 : BlobReference.partSize
            return [UInt8](repeating: UInt8(part), count: count)
        }

        private func count() throws -> Int? {
            Int(try #require(PostgreSQLCluster.shared).sql("SELECT count(*) FROM deferd.blob_parts", in: address))
        }

        @Test func file_isReadInParts_andCopied_untilItIsRemoved() throws {
            // More than one statement copies and removes.
            let parts = 130
            let blob = try put(parts, number: 1)
            let copy = BlobReference(life: 2, number: 1, size: blob.size)
            #expect(blob.parts == parts)
            try archive.copy(blob, to: copy)
            let other = try put(1, number: 2)
            for file in [blob, copy] {
                for part in [0, 1, 64, parts - 1] {
                    #expect(try archive.part(part, of: file) == Self.bytes(part, of: parts))
                }
                #expect(try archive.part(parts, of: file) == [])
            }
            try archive.remove([blob])
            #expect(try archive.part(0, of: blob) == [] && archive.part(0, of: other).count == 3)
            #expect(try count() == parts + 1)
            try archive.remove([copy, other])
            #expect(try count() == 0)
        }

        @Test func unusedFiles_areRemoved_onceTheirLifeIsOver() throws {
            let cluster = try #require(PostgreSQLCluster.shared)
            try cluster.sql(
                "INSERT INTO deferd.deferd_lives (node, instance, lease) VALUES ('other', '', 0)", in: address)
            let (over, present) = (store.life + 1, store.life)
            let used = try put(1, life: over, number: 1)
            for (life, number) in [(over, 2), (over, 3), (present, 1)] as [(Int64, Int64)] {
                _ = try put(2, life: life, number: number)
            }
            try StoreUnderTest(store).insert([JobRow.sample().with { $0.carried = .success(.file(used)) }])
            #expect(try archive.removeUnused() == 0)
            try cluster.sql("UPDATE deferd.deferd_lives SET is_over = true WHERE life = \(over)", in: address)
            #expect(try archive.removeUnused() == 2)
            #expect(try archive.part(0, of: used).count == 3 && count() == 3)
            #expect(try archive.removeUnused() == 0)
        }
    }
#endif
