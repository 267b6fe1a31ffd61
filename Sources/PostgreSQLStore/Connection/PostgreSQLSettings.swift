import CPostgreSQL

/// How to reach the database, and how long to wait for it.
package struct PostgreSQLSettings: Sendable {
    /// A connection string of libpq.
    package let address: String
    /// The password, unless the address has one.
    package let password: String?
    /// Seconds that a statement may take, and for which a call waits for a connection.
    package let statementTimeout: Double
    /// Seconds after which other nodes take over the jobs of one that has not been seen.
    package let lease: Double

    package init(address: String, password: String? = nil, statementTimeout: Double = 3, lease: Double = 15) {
        (self.address, self.password) = (address, password)
        (self.statementTimeout, self.lease) = (statementTimeout, lease)
    }

    /// What is wrong with a connection string; nil if libpq can read it. The reason is left out, as it may quote the
    /// password.
    package static func flaw(in address: String) -> String? {
        if let reason = deferd_load_libpq() {
            return "needs libpq, which cannot be loaded (\(String(cString: reason))); install it (Debian: libpq5)"
        }
        guard let options = PQconninfoParse(address, nil) else {
            return "is no address that libpq can read, such as \"postgresql://deferd@db.example.org/deferd\""
        }
        PQconninfoFree(options)
        return nil
    }

    var milliseconds: Int { Int(statementTimeout * 1000) }

    /// Seconds for which each address of a host may be silent, unless the connection string has a `connect_timeout`. libpq knows
    /// whole ones, and no fewer than two.
    var secondsPerHost: Int { max(2, Int(statementTimeout.rounded(.up))) }

    /// A statement that makes the settings of a transaction. Tables are never scanned, as each query has its index, but the
    /// server would keep plans that it made while the tables were small.
    var transaction: String {
        """
        SELECT set_config('search_path', 'deferd', true), set_config('synchronous_commit', 'on', true), \
        set_config('statement_timeout', '\(milliseconds)', true), set_config('lock_timeout', '\(milliseconds)', true), \
        set_config('idle_in_transaction_session_timeout', '1000', true), set_config('jit', 'off', true), \
        set_config('enable_seqscan', 'off', true)
        """
    }
}
