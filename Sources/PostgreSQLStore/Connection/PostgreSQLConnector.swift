import Dispatch
import JobModel
import Synchronization

/// Opens the connections of one owner. Each attempt has a thread of its own, as libpq waits for each host in turn, and for the
/// addresses of their names. A call waits no longer than for a statement; a connection that is late is for the next call.
final class PostgreSQLConnector: Sendable {
    /// Several calls may wait for it.
    private final class Attempt: Sendable {
        let end = DispatchGroup()
        /// What it came to. A success has no connection once a call has taken that.
        private let outcome = Mutex<Result<PostgreSQLConnection?, StoreError>?>(nil)

        init(_ settings: PostgreSQLSettings, errors: StoreError.Code) {
            end.enter()
            DispatchQueue(label: "deferd.connection").async { [self] in
                let found: Result<PostgreSQLConnection?, StoreError>
                do throws(StoreError) {
                    found = .success(try PostgreSQLConnection(settings, errors: errors))
                } catch {
                    found = .failure(error)
                }
                outcome.withLock { $0 = found }
                end.leave()
            }
        }

        /// Whether it has nothing for a call that begins now.
        var isSpent: Bool {
            outcome.withLock { outcome in
                switch outcome {
                case nil, .success(.some): false
                case .success(nil), .failure: true
                }
            }
        }

        /// Its connection, once.
        func take() throws(StoreError) -> PostgreSQLConnection? {
            try outcome.withLock { outcome throws(StoreError) in
                guard let connection = try outcome?.get() else { return nil }
                outcome = .success(nil)
                return connection
            }
        }
    }

    private let settings: PostgreSQLSettings
    private let errors: StoreError.Code
    private let latest = Mutex<Attempt?>(nil)

    /// Its errors, and those of its connections, have this code.
    init(_ settings: PostgreSQLSettings, errors: StoreError.Code) { (self.settings, self.errors) = (settings, errors) }

    /// A connection for the caller alone. Begins no attempt while one is under way.
    func connect() throws(StoreError) -> PostgreSQLConnection {
        let end = DispatchTime.now() + .milliseconds(settings.milliseconds + 500)
        while true {
            let attempt = latest.withLock { latest in
                if let latest, !latest.isSpent { return latest }
                let attempt = Attempt(settings, errors: errors)
                latest = attempt
                return attempt
            }
            guard attempt.end.wait(timeout: end) == .success else {
                let failure = PostgreSQLFailure(code: "08006", message: "it did not answer in time")
                throw StoreError(errors, failure, at: "PostgreSQL")
            }
            // Another call may have taken it, or the server closed it meanwhile.
            if let connection = try attempt.take(), connection.checkIdle() { return connection }
        }
    }
}
