import CPostgreSQL

/// How to reach the database, and how long to wait for it.
package struct PostgreSQLSettings: Sendable {
    /// A connection string of libpq.
    package let address: String
    /// Seconds that a statement may take, and a connection attempt.
    package let statementTimeout: Double
    /// Seconds after which other nodes take over the jobs of one that has not been seen.
    package let lease: Double

    package init(address: String, statementTimeout: Double = 3, lease: Double = 15) {
        (self.address, self.statementTimeout, self.lease) = (address, statementTimeout, lease)
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

    /// Settings of each session, whatever the role's defaults are.
    var session: String {
        """
        SET default_transaction_isolation = 'read committed'; SET default_transaction_read_only = off; \
        SET default_transaction_deferrable = off; SET synchronous_commit = on; SET search_path = deferd; \
        SET statement_timeout = \(milliseconds); SET lock_timeout = \(milliseconds); \
        SET idle_in_transaction_session_timeout = 1000; SET client_min_messages = warning; SET jit = off; \
        SELECT backend_start::text FROM pg_stat_activity WHERE pid = pg_backend_pid()
        """
    }
}
