import JobEngine
import JobModel
import JobStore

#if canImport(PostgreSQLStore)
    import PostgreSQLStore
#endif

/// What the daemon needs of a store besides rounds.
protocol StateStore: JobStore, Sendable {
    var isAfterCleanStop: Bool { get }
    var isAfterBoot: Bool { get }
    var blobs: String { get }
    /// Where files are kept for all daemons of a database; nil if that is the directory ``blobs``.
    var blobArchive: (any BlobArchive)? { get }
    var jobReader: any JobReader { get }
    func steadyAnchor(boot: String, fresh: SteadyTime) throws(StoreError) -> SteadyTime
    /// Tells other nodes what this one is after a reload.
    func describe(_ node: NodeDescription) throws(StoreError)
    func close(isClean: Bool)
}

extension SQLiteStore: StateStore {
    var jobReader: any JobReader { reader }
    func describe(_: NodeDescription) {}
    var blobArchive: (any BlobArchive)? { nil }
}

#if canImport(PostgreSQLStore)
    extension PostgreSQLStore: StateStore {
        var jobReader: any JobReader { reader }
        var blobArchive: (any BlobArchive)? { archive }

        /// Seconds for which a server that cannot be reached is tried.
        private static let patience = 30.0

        convenience init(
            address: String, _ configuration: Configuration, report: @escaping @Sendable (StoreError) -> Void
        ) throws(StoreError) {
            try self.init(
                PostgreSQLSettings(
                    address: address, password: configuration.storePassword,
                    statementTimeout: configuration.statementTimeout, lease: configuration.lease),
                path: configuration.stateDirectory, node: configuration.node, patience: Self.patience, report: report)
        }
    }
#endif

extension ConfigurationValue {
    /// The address of a PostgreSQL database; nil if it is empty. No reason quotes it, as it may have a password.
    func storeAddress() throws -> String? {
        guard let address = try optionalText() else { return nil }
        guard address.hasPrefix("postgresql://") || address.hasPrefix("postgres://") else {
            throw ConfigurationErrors("must begin with postgresql://")
        }
        #if canImport(PostgreSQLStore)
            if let flaw = PostgreSQLSettings.flaw(in: address) { throw ConfigurationErrors(flaw) }
            return address
        #else
            throw ConfigurationErrors("needs a deferd that was built with libpq; this one was not")
        #endif
    }
}
