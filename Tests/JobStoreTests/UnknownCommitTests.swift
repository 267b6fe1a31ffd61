import CSQLite
import Glibc
import JobModel
import Synchronization
import TestSupport
import Testing

@testable import JobStore

/// Commits that fail while the log is written.
@Suite struct UnknownCommitTests {
    /// Lets writes to files below a directory fail, by taking the place of SQLite's own call.
    private enum FailingWrites {
        static let directory = Mutex<String?>(nil)

        static func begin(below path: String) {
            _ = isPlaced
            directory.withLock { $0 = path }
        }

        static func end() { directory.withLock { $0 = nil } }

        private static let isPlaced: Bool = {
            let pwrite: @convention(c) (Int32, UnsafeRawPointer?, Int, off_t) -> Int = { file, bytes, count, offset in
                if FailingWrites.mustFail(file) { return -1 }
                return Glibc.pwrite(file, bytes, count, offset)
            }
            let write: @convention(c) (Int32, UnsafeRawPointer?, Int) -> Int = { file, bytes, count in
                if FailingWrites.mustFail(file) { return -1 }
                return Glibc.write(file, bytes, count)
            }
            guard let vfs = sqlite3_vfs_find(nil) else { return false }
            for (name, call) in [
                ("pwrite", unsafeBitCast(pwrite, to: sqlite3_syscall_ptr.self)),
                ("pwrite64", unsafeBitCast(pwrite, to: sqlite3_syscall_ptr.self)),
                ("write", unsafeBitCast(write, to: sqlite3_syscall_ptr.self)),
            ] { _ = vfs.pointee.xSetSystemCall(vfs, name, call) }
            return true
        }()

        private static func mustFail(_ file: Int32) -> Bool {
            guard let directory = directory.withLock(\.self) else { return false }
            var path = [CChar](repeating: 0, count: 4096)
            let length = readlink("/proc/self/fd/\(file)", &path, path.count - 1)
            let name = String(decoding: path.prefix(max(0, length)).map { UInt8(bitPattern: $0) }, as: UTF8.self)
            guard name.hasPrefix(directory) else {
                return false
            }
            errno = EIO
            return true
        }
    }

    @Test func isSettledByTheNextCommit() throws {
        let directory = try TemporaryDirectory()
        let store = try SQLiteStore(path: directory.path)
        let rounds = StoreUnderTest(store)
        try rounds.insert([.sample()])
        FailingWrites.begin(below: directory.path)
        defer { FailingWrites.end() }
        let insert = { (transaction: any JobTransaction) throws(StoreError) in
            _ = try transaction.insert([NewJobRow(row: .sample(), document: .spec(Array("{}".utf8)))])
        }
        guard case .unknown = store.round(insert) else {
            Issue.record("The fate of the commit is known.")
            return
        }
        // Nothing is written before that is settled.
        guard case .undone = store.round(insert) else {
            Issue.record("A round began on an unsettled one.")
            return
        }
        FailingWrites.end()
        try rounds.round { transaction in
            #expect(try transaction.job(1) != nil)
            #expect(try transaction.job(2) == nil)
            _ = try transaction.nextNumber()
        }
        #expect(try rounds.insert([.sample()]) == [2])
        store.close(isClean: true)
        let settlements = try SQLiteConnection(directory.path + "/deferd.db", errors: .read).number(
            "SELECT settlements FROM state")
        #expect(settlements == 1)
        #expect(try SQLiteStore(path: directory.path).reader.job(3) == nil)
    }
}
