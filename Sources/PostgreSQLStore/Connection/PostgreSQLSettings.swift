import CPostgreSQL

/// How to reach the database, and how long to wait for it.
package struct PostgreSQLSettings: Sendable {
    /// A connection string of libpq.
    package let address: String
    /// Seconds that a statement may take, and a connection attempt.
    package let statementTimeout: Double

    package init(address: String, statementTimeout: Double = 3) {
        (self.address, self.statementTimeout) = (address, statementTimeout)
    }

    /// Whether libpq can read the connection string. The reason is left out, as it may quote the password.
    package static func isValid(_ address: String) -> Bool {
        guard let options = PQconninfoParse(address, nil) else { return false }
        PQconninfoFree(options)
        return true
    }

    var milliseconds: Int { Int(statementTimeout * 1000) }

    /// Settings of each session, whatever the role's defaults are.
    var session: String {
        """
        SET default_transaction_isolation = 'read committed'; SET default_transaction_read_only = off; \
        SET default_transaction_deferrable = off; SET synchronous_commit = on; SET search_path = deferd; \
        SET statement_timeout = \(milliseconds); SET lock_timeout = \(milliseconds); \
        SET idle_in_transaction_session_timeout = 1000; SET client_min_messages = warning; \
        SELECT backend_start::text FROM pg_stat_activity WHERE pid = pg_backend_pid()
        """
    }
}
