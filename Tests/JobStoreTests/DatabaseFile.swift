import GRDB

/// A database file that a test changes behind the store's back.
struct DatabaseFile {
    private let queue: DatabaseQueue

    init(_ path: String) throws {
        queue = try DatabaseQueue(path: path)
    }

    func execute(_ sql: String) throws {
        try queue.writeWithoutTransaction { try $0.execute(sql: sql) }
        try queue.close()
    }
}
