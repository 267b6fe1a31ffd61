#if canImport(PostgreSQLStore)
    import Dispatch
    import Foundation
    import Glibc
    import JobModel
    import JobStore
    import Synchronization
    import TestSupport
    import Testing

    @testable import PostgreSQLStore

    /// What only PostgreSQL does: a connection that breaks, at any moment, and versions of the schema.
    @Suite(.enabled(if: PostgreSQLCluster.programs != nil, "PostgreSQL is not installed.")) struct PostgreSQLStoreTests
    {
        private let cluster: PostgreSQLCluster
        private let address: String
        private let directory: TemporaryDirectory
        private let store: PostgreSQLStore
        private let rounds: StoreUnderTest

        init() throws {
            cluster = try #require(PostgreSQLCluster.shared)
            address = try cluster.makeDatabase()
            directory = try TemporaryDirectory()
            store = try Self.open(address, directory)
            rounds = StoreUnderTest(store, directory)
        }

        private static func open(_ address: String, _ directory: TemporaryDirectory) throws -> PostgreSQLStore {
            // Long for a slow machine, short for those that wait for it.
            try PostgreSQLStore(
                PostgreSQLSettings(address: address, statementTimeout: 3), path: directory.path,
                node: NodeDescription(name: "test"))
        }

        /// The server's process for rounds; nil once it is gone.
        private func process() throws -> pid_t? {
            let pids = try cluster.sql(
                """
                SELECT pid FROM pg_stat_activity WHERE datname = current_database() AND application_name = 'deferd' \
                ORDER BY backend_start LIMIT 1
                """, in: address)
            return pid_t(pids)
        }

        @Test func aRoundIsUndone_whenItsConnectionBreaksInside() throws {
            let process = try #require(try process())
            let end = store.round { transaction throws(StoreError) in
                _ = try transaction.insert([NewJobRow(row: .sample(), document: .spec([]))])
                _ = try transaction.counts()
                kill(process, SIGTERM)
                while true { _ = try transaction.counts() }
            }
            guard case .undone = end else {
                Issue.record("\(end)")
                return
            }
            let left = try store.reader.page(JobFilter()).jobs
            #expect(left.isEmpty)
        }

        @Test func copiesOfAStateDirectory_liveSideBySide_underOtherNames() throws {
            let copy = try TemporaryDirectory()
            let identity = try Data(contentsOf: URL(filePath: directory.path + "/deferd.node"))
            try identity.write(to: URL(filePath: copy.path + "/deferd.node"))
            let other = StoreUnderTest(
                try PostgreSQLStore(
                    PostgreSQLSettings(address: address, statementTimeout: 3), path: copy.path,
                    node: NodeDescription(name: "copy")))
            // The start of the copy has ended this life, once.
            rounds.undoneRound { transaction throws(StoreError) in _ = try transaction.counts() }
            try rounds.round { _ = try $0.counts() }
            for _ in 0..<3 {
                try other.round { _ = try $0.counts() }
                try rounds.round { _ = try $0.counts() }
            }
        }

        @Test func reads_succeed_onceTheServerIsThereAgain() throws {
            store.close(isClean: true)
            let household = try TemporaryDirectory()
            let (socket, link) = (cluster.directory.path + "/.s.PGSQL.5432", household.path + "/.s.PGSQL.5432")
            #expect(symlink(socket, link) == 0)
            let address = address.replacing(cluster.directory.path, with: household.path)
            let away = try Self.open(address, directory)
            #expect(unlink(link) == 0)
            try cluster.sql(
                """
                SELECT pg_terminate_backend(pid) FROM pg_stat_activity
                WHERE datname = current_database() AND application_name = 'deferd'
                """, in: self.address)
            while (try? away.reader.page(JobFilter())) != nil {}
            #expect(throws: StoreError.self) { try away.reader.page(JobFilter()) }
            #expect(symlink(socket, link) == 0)
            // Reads fail without an attempt for as long as the last one took, a second at most.
            while (try? away.reader.page(JobFilter())) == nil { usleep(10_000) }
            #expect(try away.reader.page(JobFilter()).jobs.isEmpty)
        }

        @Test func jobsWithParts_areStranded_onceTheirNodeIsGone() throws {
            let run = RunID(life: store.life, number: 1)
            let ids = try rounds.insert([
                .sample().with { $0.node = "gone" }, .sample().with { ($0.node, $0.run) = ("gone", run) },
                .sample().with { $0.node = "test" }, .sample(), .sample(state: .failed).with { $0.node = "gone" },
            ])
            let other = try rounds.insert([.sample().with { $0.node = "gone" }])
            try rounds.round { transaction in
                for id in ids { try transaction.save(checkpoint: [1], of: id, link: 0) }
                try transaction.save(checkpoint: [1], of: ids[0], link: 1)
                #expect(try transaction.stranded(after: 0, limit: 9).map(\.id) == [ids[0], ids[4]])
                #expect(try transaction.stranded(after: ids[0], limit: 1).map(\.id) == [ids[4]])
                #expect(try transaction.stranded(after: ids[4], limit: 9).isEmpty && other.count == 1)
            }
        }

        @Test func nodeWithoutItsDirectory_goesOn_onceItsFormerLifeWasSilentForItsLease() throws {
            let former = store.life
            store.close(isClean: false)
            try cluster.sql("UPDATE deferd.deferd_lives SET lease = 1000", in: address)
            let other = try TemporaryDirectory()
            let second = try Self.open(address, other)
            #expect(second.life > former && !second.isAfterCleanStop)
            #expect(try cluster.sql("SELECT life FROM deferd.deferd_lives WHERE is_over", in: address) == "\(former)")
            #expect(try StoreUnderTest(second).round { try $0.news()?.hasLostRuns } == true)
        }

        @Test func nodeOfATakenName_isRefused_onceTheOtherOneIsSeen() throws {
            // Only a beat can end the wait.
            try cluster.sql("UPDATE deferd.deferd_lives SET lease = 3600000", in: address)
            let isOver = Atomic(false)
            DispatchQueue(label: "beats").async { [cluster, address] in
                while !isOver.load(ordering: .relaxed) {
                    _ = try? cluster.sql("UPDATE deferd.deferd_lives SET beat = beat + 1", in: address)
                    usleep(100_000)
                }
            }
            defer { isOver.store(true, ordering: .relaxed) }
            let other = try TemporaryDirectory()
            do {
                _ = try Self.open(address, other)
                Issue.record("It was opened.")
            } catch let error as StoreError {
                #expect(error.code == .locked && error.message.contains("has a node of the name test already"))
            }
            #expect(try StoreUnderTest(store).insert([.sample()]).count == 1)
        }

        @Test func life_isNotEnded_whenItWasSeenMeanwhile() throws {
            let connection = try PostgreSQLConnection(
                PostgreSQLSettings(address: address, statementTimeout: 20), errors: .write)
            for (beat, isOver) in [(1, "f"), (0, "t")] {
                try connection.begin()
                try Turn.end(
                    Lives.Row(life: store.life, beat: Int64(beat), lease: 0, isOver: false, node: "", programs: []),
                    connection)
                try connection.commit()
                #expect(try cluster.sql("SELECT is_over FROM deferd.deferd_lives", in: address) == isOver)
            }
        }

        @Test func readingRound_isRolledBack_whenItsEndFails() throws {
            store.close(isClean: true)
            // Each round beats, and moves counts at its end.
            let beating = try PostgreSQLStore(
                PostgreSQLSettings(address: address, statementTimeout: 3, lease: 0), path: directory.path,
                node: NodeDescription(name: "test"))
            let locker = try PostgreSQLConnection(
                PostgreSQLSettings(address: address, statementTimeout: 20), errors: .write)
            try locker.send("BEGIN")
            try locker.send("LOCK TABLE deferd.count_changes IN SHARE MODE")
            _ = try locker.finish()
            let failed = beating.round { _ in }
            guard case .undone = failed else {
                Issue.record("\(failed)")
                return
            }
            locker.rollBack()
            let next = beating.round { _ in }
            guard case .committed = next else {
                Issue.record("\(next)")
                return
            }
        }

        @Test func nodes_areTheLatestLives_ofADay() throws {
            try cluster.sql(
                """
                UPDATE deferd.deferd_lives SET node = 'here';
                INSERT INTO deferd.deferd_lives (node, instance, version, programs, configuration, seen, is_clean, is_over)
                VALUES ('gone', '', '1', NULL, 'c', now() - interval '25 hours', false, false),
                    ('stopped', '', '1', NULL, 'c', now() - interval '23 hours', true, true),
                    ('twice', '', '1', NULL, 'c', now() - interval '1 minute', false, true),
                    ('twice', '', '2', '["b"]', 'd', now() + interval '1 minute', false, false),
                    ('dead', '', NULL, NULL, NULL, now(), false, true),
                    ('silent', '', '1', '[]', 'c', now() - interval '1 minute', false, false)
                """, in: address)
            try rounds.insert((0..<4).map { _ in .sample() })
            try cluster.sql(
                """
                UPDATE deferd.jobs SET run_life = (SELECT max(life) FROM deferd.deferd_lives WHERE node =
                (ARRAY['twice', 'twice', 'silent', 'dead'])[1 + (id - (SELECT min(id) FROM deferd.jobs))])
                """, in: address)
            let nodes = try store.reader.nodes()
            #expect(nodes.map(\.node.name) == ["dead", "here", "silent", "stopped", "twice"])
            #expect(nodes.map(\.state) == [.away, .running, .away, .stopped, .running])
            #expect(nodes.map(\.running) == [0, 0, 1, 0, 2])
            let twice = NodeDescription(name: "twice", version: "2", programs: ["b"], configuration: "d")
            #expect(
                nodes.map(\.node)[2...] == [
                    NodeDescription(name: "silent", version: "1", programs: [], configuration: "c"),
                    NodeDescription(name: "stopped", version: "1", configuration: "c"), twice,
                ])
            #expect(nodes[4].seen.milliseconds - nodes[1].seen.milliseconds > 50_000)
        }

        /// The server keeps the pages of tables that were emptied, and believes for a while that they stay empty.
        @Test func statement_readsOnlyItsRows_whenTablesWereEmpty() throws {
            func work() throws {
                let key = "\(UInt64.random(in: 0 ... .max))"
                let job = try rounds.insert([.sample(key: key, tags: ["a", "b"]).with { $0.due = 7 }])[0]
                try rounds.round { transaction in
                    try transaction.load([.key(owner: 1000, key), .job(job)])
                    let old = try #require(try transaction.job(job))
                    #expect(try transaction.due(steady: 9, wall: old.createdAt, limit: 9).map(\.id) == [job])
                    try transaction.update(old.with { $0.due = nil })
                    let terms = JobTerms(plan: old.plan, queue: "q", priority: 0, key: key, tags: ["b", "c"])
                    try transaction.replaceTerms(of: old.with { $0.terms = terms }, was: old)
                }
                let blob = BlobReference(life: 1, number: job, size: 1)
                try store.archive.put([1], as: 0, of: blob)
                try store.archive.remove([blob])
            }
            let rows = 3000
            func fill() throws {
                try work()
                try cluster.sql(
                    """
                    INSERT INTO deferd.jobs SELECT new.* FROM deferd.jobs AS job, generate_series(1, \(rows)) AS n,
                    jsonb_populate_record(job, jsonb_build_object(
                        'id', id + 100000 + n, 'key', '\\x' || lpad(n::text, 8, '0'))) AS new;
                    INSERT INTO deferd.tags SELECT 1000, 'd', n FROM generate_series(1, \(rows)) AS n;
                    INSERT INTO deferd.lists SELECT n, 1, '' FROM generate_series(1, \(rows)) AS n;
                    INSERT INTO deferd.blob_parts SELECT 2, n, 0, '' FROM generate_series(1, \(rows)) AS n
                    """, in: address)
            }
            try fill()
            for table in ["jobs", "tags", "lists", "blob_parts"] {
                try cluster.sql("DELETE FROM deferd.\(table)", in: address)
                try cluster.sql("VACUUM (TRUNCATE false, ANALYZE) deferd.\(table)", in: address)
            }
            try fill()
            for _ in 0..<10 { try work() }
            store.close(isClean: true)
            // The sessions count what they have read when they end.
            while try process() != nil { usleep(10_000) }
            let read = try cluster.sql("SELECT sum(idx_tup_read) FROM pg_stat_user_indexes", in: address)
            #expect(try #require(Int(read)) < rows)
        }

        @Test func aSchemaOfTheFuture_isRefused() throws {
            store.close(isClean: true)
            try cluster.sql("UPDATE deferd.deferd_schema SET version = 9, oldest = 8", in: address)
            do {
                _ = try Self.open(address, directory)
                Issue.record("It was opened.")
            } catch let error as StoreError {
                #expect(error.code == .otherVersion && error.isLasting)
            }
        }

        @Test func aStart_knowsHowTheLastOneEnded() throws {
            let life = store.life
            #expect(store.isAfterCleanStop)
            store.close(isClean: false)
            let second = try Self.open(address, directory)
            #expect(second.life > life && !second.isAfterCleanStop)
            try StoreUnderTest(second, directory).round { try $0.forgetLostLives() }
            second.close(isClean: true)
            let third = try Self.open(address, directory)
            #expect(third.isAfterCleanStop)
        }
    }
#endif
