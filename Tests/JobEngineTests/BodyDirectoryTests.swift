import Foundation
import JobModel
import TestSupport
import Testing

@testable import JobEngine

@Suite struct BodyDirectoryTests {
    /// More names than the C library reads at once: the address sanitizer (`make test-asan`) sees what is read behind the last.
    @Test func jobs_areAllThatHaveABody() throws {
        let directory = try TemporaryDirectory()
        for job in 1...1500 { try directory.write("", to: "\(job * 100)-\(job % 3)") }
        try directory.write("", to: "100-1")
        try directory.write("", to: "no-body")
        #expect(BodyDirectory(path: directory.path).jobs() == Set((1...1500).map { JobID($0 * 100) }))
    }
}
