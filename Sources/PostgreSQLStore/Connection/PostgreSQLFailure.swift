import JobModel

/// An error that PostgreSQL or libpq reported.
struct PostgreSQLFailure: Error, CustomStringConvertible {
    /// The SQLSTATE; empty if the server sent none.
    let code: String
    let message: String

    var description: String { message }

    /// Whether the session is of no use any more: the server ends, or has become one that only reads.
    var endsSession: Bool {
        code.hasPrefix("08") || code.hasPrefix("57P") || ["25006", "25P03"].contains(code)
    }

    /// Whether it waited for too long: for a lock, or for the end of a statement.
    var isTimeout: Bool { ["55P03", "57014"].contains(code) }

    /// Whether it lasts until the configuration or the rights of the role change.
    var isLasting: Bool {
        // Refused, without a right, or without the database.
        code.hasPrefix("28") || ["3D000", "42501", "3F000"].contains(code)
    }
}

extension StoreError {
    /// The error for a failure at the database `name`.
    init(_ code: Code, _ failure: PostgreSQLFailure, at name: String) {
        let step =
            failure.isLasting
            ? "check state.store and the rights of its role" : "check the server; deferd goes on by itself"
        self.init(
            code, "\(name) failed (\(failure.message)); \(step).", underlying: failure, isLasting: failure.isLasting)
    }

    var failure: PostgreSQLFailure? { underlying as? PostgreSQLFailure }
}
