import JobClient
import JobModel

/// A job with the children of its lists, and theirs.
struct JobFamily: Sendable {
    /// The most jobs that are shown together.
    static let limit = 1000

    let job: JobSnapshot
    let children: [JobFamily]
    /// The number of all children, shown or not.
    let count: Int

    init(job: JobSnapshot, children: [JobFamily] = [], count: Int = 0) {
        self.job = job
        self.children = children
        self.count = count
    }

    /// Asks the daemon for the children of `job`, at most `perJob` of each job and `room` in all.
    init(of job: JobSnapshot, perJob: Int, room: inout Int, from client: JobClient) async throws(JobClientError) {
        self.job = job
        count = job.json["children"]?.int ?? 0
        var families: [JobFamily] = []
        let wanted = min(perJob, room)
        if count > 0, wanted > 0 {
            var filter = JobClient.Filter()
            filter.parent = job.id
            filter.isOldestFirst = true
            var found: [JobSnapshot] = []
            var after: Int64?
            // A page of large jobs can end early.
            repeat {
                let page = try await client.list(filter, after: after, limit: wanted - found.count)
                found += page.jobs
                after = page.jobs.isEmpty ? nil : page.next
            } while after != nil && found.count < wanted
            room -= found.count
            for child in found {
                families.append(try await JobFamily(of: child, perJob: perJob, room: &room, from: client))
            }
        }
        children = families
    }

    /// How many children are not shown.
    var hidden: Int { max(0, count - children.count) }

    /// All jobs of the family, each before its children.
    var all: [JobSnapshot] { [job] + children.flatMap(\.all) }
}
