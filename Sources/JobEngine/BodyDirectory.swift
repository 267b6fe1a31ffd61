import DataSources
import Dispatch
import Glibc
import JobModel

/// The directory of bodies that are too large for a result: one file for each job and link. Its calls block.
struct BodyDirectory: Sendable {
    let path: String

    /// The path of the large body of a link's result.
    func file(of job: JobID, link: Int) -> String { "\(path)/\(job)-\(link)" }

    /// The jobs that have a body here, in no order.
    func jobs() -> Set<JobID> {
        guard let directory = opendir(path) else { return [] }
        defer { closedir(directory) }
        var jobs: Set<JobID> = []
        while let entry = readdir(directory) {
            let name = withUnsafeBytes(of: entry.pointee.d_name) { raw in
                String(decoding: raw.prefix { $0 != 0 }, as: UTF8.self)
            }
            let parts = name.split(separator: "-")
            if parts.count == 2, let job = JobID(parts[0]), Int(parts[1]) != nil { jobs.insert(job) }
        }
        return jobs
    }

    /// Bytes that are free on the disk of a directory; nil where that is not known.
    static func freeBytes(_ path: String) -> Int64? {
        let files = FileOperations.real
        guard let directory = try? files.openDirectory(path) else { return nil }
        defer { files.close(directory) }
        return files.freeBytes(directory)
    }

    /// Removes the bodies of a job, up to link `last`.
    func remove(_ job: JobID, upTo last: Int) {
        for link in 0...last { unlink(file(of: job, link: link)) }
    }
}
