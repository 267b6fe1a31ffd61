import CSQLite
import Glibc
import JobModel

/// A few connections that read, each for a page at a time, and the gate that a checkpoint closes for a moment.
///
/// A reader keeps what was committed after its snapshot in the log. With readers at all times the log would never be used
/// anew; so the checkpointer lets those that are there finish their page, and holds the others up until it is done.
final class ReadingPool: @unchecked Sendable {
    // `mutex` guards all below it.
    private let mutex = UnsafeMutablePointer<pthread_mutex_t>.allocate(capacity: 1)
    private let changed = UnsafeMutablePointer<pthread_cond_t>.allocate(capacity: 1)
    private var free: [SQLiteConnection] = []
    /// Those of reads that take long.
    private var long: [SQLiteConnection] = []
    private let path: String
    private let count: Int
    private var isGateClosed = false
    private var isClosed = false

    init(_ path: String, count: Int) throws(StoreError) {
        self.path = path
        self.count = count
        pthread_mutex_init(mutex, nil)
        pthread_cond_init(changed, nil)
        for _ in 0..<count {
            let connection = try SQLiteConnection(path, errors: .read)
            try connection.execute("PRAGMA query_only = ON; PRAGMA temp_store = MEMORY; PRAGMA cache_size = -8192")
            free.append(connection)
        }
    }

    deinit {
        pthread_cond_destroy(changed)
        pthread_mutex_destroy(mutex)
        changed.deallocate()
        mutex.deallocate()
    }

    private func locked<Value>(_ body: () -> Value) -> Value {
        pthread_mutex_lock(mutex)
        defer { pthread_mutex_unlock(mutex) }
        return body()
    }

    /// Runs `body` in one snapshot, on a connection that no other thread has meanwhile.
    func read<Value>(_ body: (SQLiteConnection) throws(StoreError) -> Value) throws(StoreError) -> Value {
        let taken: SQLiteConnection? = locked {
            while !isClosed, isGateClosed || free.isEmpty { pthread_cond_wait(changed, mutex) }
            return isClosed ? nil : free.removeLast()
        }
        guard let connection = taken else { throw StoreError.closed }
        defer {
            locked {
                free.append(connection)
                pthread_cond_broadcast(changed)
            }
        }
        return try connection.withSnapshot(body)
    }

    /// Runs `body` in one snapshot, on a connection of its own that no gate holds up: for what takes long. It ends early,
    /// with an error, where the pool is closed.
    func readForLong<Value>(_ body: (SQLiteConnection) throws(StoreError) -> Value) throws(StoreError) -> Value {
        try checkOpen()
        let connection = try SQLiteConnection(path, errors: .read)
        locked { long.append(connection) }
        defer {
            locked {
                long.removeAll { $0 === connection }
                pthread_cond_broadcast(changed)
            }
        }
        do {
            try checkOpen()
            return try connection.withSnapshot(body)
        } catch {
            try checkOpen()
            throw error
        }
    }

    /// Throws where the pool is closed.
    func checkOpen() throws(StoreError) { if locked({ isClosed }) { throw StoreError.closed } }

    /// Whether a snapshot keeps the log from being used anew for long.
    var isReadForLong: Bool { locked { !long.isEmpty } }

    var idle: [SQLiteConnection] { locked { free } }

    /// Runs `body` while no connection reads.
    func withGateClosed(_ body: () -> Void) {
        locked {
            isGateClosed = true
            while free.count < count { pthread_cond_wait(changed, mutex) }
        }
        defer {
            locked {
                isGateClosed = false
                pthread_cond_broadcast(changed)
            }
        }
        body()
    }

    /// Waits for the pages that are being read, and closes the connections; what is asked afterwards is refused.
    func close() {
        locked {
            isClosed = true
            pthread_cond_broadcast(changed)
            for connection in long { sqlite3_interrupt(connection.pointer) }
            while free.count < count || !long.isEmpty { pthread_cond_wait(changed, mutex) }
            free = []
        }
    }
}

extension SQLiteConnection {
    fileprivate func withSnapshot<Value>(
        _ body: (SQLiteConnection) throws(StoreError) -> Value
    ) throws(StoreError) -> Value {
        try statement("BEGIN").run()
        defer { _ = try? statement("COMMIT").run() }
        return try body(self)
    }
}
