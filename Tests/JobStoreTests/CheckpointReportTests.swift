import GRDB
import JobModel
import Synchronization
import Testing

@testable import JobStore

@Suite struct CheckpointReportTests {
    @Test func failure_isToldOnce_andItsEnd() {
        let told = Mutex<[String]>([])
        let report = CheckpointReport(database: "/state/deferd.db") { error in
            told.withLock { $0.append(error.map(\.message) ?? "again") }
        }
        report.run {}
        for _ in 0..<3 { report.run { throw DatabaseError(resultCode: .SQLITE_FULL) } }
        report.run { throw DatabaseError(resultCode: .SQLITE_BUSY) }
        #expect(told.withLock(\.count) == 1)
        #expect(told.withLock { $0.first?.contains("/state/deferd.db has no room") } == true)
        for _ in 0..<3 { report.run {} }
        report.run { throw DatabaseError(resultCode: .SQLITE_IOERR) }
        #expect(told.withLock { $0.map { $0 == "again" } } == [false, true, false])
    }
}
