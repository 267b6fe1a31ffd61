#if canImport(PostgreSQLStore)
    import JobModel
    import JobStore
    import TestSupport
    import Testing

    @testable import PostgreSQLStore

    /// Hosts that take connections and do not answer.
    @Suite(.enabled(if: PostgreSQLCluster.programs != nil, "PostgreSQL is not installed."))
    struct PostgreSQLConnectorTests {
        private let cluster: PostgreSQLCluster
        private let silent: SilentPort

        init() throws {
            cluster = try #require(PostgreSQLCluster.shared)
            silent = try SilentPort(isListening: true)
        }

        /// The address of a new database whose first host is silent.
        private func address() throws -> String {
            let directory = cluster.directory.path
            return try cluster.makeDatabase().replacing(
                "host=\(directory)", with: "host=127.0.0.1,\(directory)&port=\(silent.port),5432")
        }

        @Test func store_isOpened_atTheSecondHost_ifTheFirstIsSilent() throws {
            let directory = try TemporaryDirectory()
            let store = try PostgreSQLStore(
                PostgreSQLSettings(address: address(), statementTimeout: 3), path: directory.path,
                node: NodeDescription(name: "test"), patience: 60)
            let rounds = StoreUnderTest(store)
            try rounds.insert([.sample()])
            #expect(try store.reader.page(JobFilter()).jobs.count == 1)
            // The next connection begins at the silent host again.
            store.connection = nil
            let end = ContinuousClock.now + .seconds(60)
            var isStored = false
            while !isStored, ContinuousClock.now < end {
                if case .committed = store.round({ _ in }) { isStored = true }
            }
            #expect(isStored)
        }

        /// libpq needs a second at least to leave the first host, and a call waits for 0.6 seconds.
        @Test func lateConnection_isForALaterCall() throws {
            let connector = PostgreSQLConnector(
                PostgreSQLSettings(address: try address(), statementTimeout: 0.1), errors: .write)
            let end = ContinuousClock.now + .seconds(60)
            var connection: PostgreSQLConnection?
            while connection == nil, ContinuousClock.now < end { connection = try? connector.connect() }
            let found = try #require(connection)
            #expect(found.name == "PostgreSQL at \(cluster.directory.path)")
            // Each call has a connection of its own.
            connection = nil
            while connection == nil, ContinuousClock.now < end { connection = try? connector.connect() }
            #expect(connection != nil && connection !== found)
        }

        @Test func call_doesNotWait_asLongAsLibpq() throws {
            let address = "postgresql://postgres@127.0.0.1:\(silent.port)/postgres?connect_timeout=300"
            let connector = PostgreSQLConnector(
                PostgreSQLSettings(address: address, statementTimeout: 0.1), errors: .write)
            let start = ContinuousClock.now
            for _ in 0..<3 {
                do throws(StoreError) {
                    _ = try connector.connect()
                    Issue.record("A silent host was connected to.")
                } catch {
                    #expect(error.message.contains("it did not answer in time") && error.mayPass, "\(error)")
                }
            }
            #expect(ContinuousClock.now - start < .seconds(200))
            // All calls wait for the same attempt, which begins twice.
            #expect(silent.closeConnections() <= 2)
        }

        @Test func hostThatRefuses_isAskedAgain_andItsReasonIsTold() throws {
            let address = cluster.address(of: "none")
            let connector = PostgreSQLConnector(
                PostgreSQLSettings(address: address, statementTimeout: 20), errors: .write)
            for _ in 0..<2 {
                do throws(StoreError) {
                    _ = try connector.connect()
                    Issue.record("It connected.")
                } catch {
                    #expect(error.isLasting && error.message.contains("it has no such database"), "\(error)")
                }
            }
            try cluster.sql("CREATE DATABASE none", in: "postgres")
            _ = try connector.connect()
            try cluster.sql("DROP DATABASE none WITH (FORCE)", in: "postgres")
        }
    }
#endif
