import InMemoryStore
import JobModel
import JobCore

/// Limits on waiting jobs and stored bytes, checked when a job of the owner is admitted.
extension Oracle {
    private struct Admission {
        var jobs = 0
        /// Jobs that became waiting without admission, and the growth in bytes of all jobs.
        var returned = 0
        var grown: Int64 = 0
    }

    func checkAdmissions(_ world: World) {
        guard !untold.isEmpty else { return }
        var admissions: [UInt32: Admission] = [:]
        for change in changes {
            guard let row = change.after else { continue }
            var admission = admissions[row.owner] ?? Admission()
            if change.before == nil, row.parent == nil {
                admission.jobs += 1
                admission.grown += row.size - JobRow.fixedSize - Int64(row.storedSpecSize)
            } else {
                if row.state.isWaiting, change.before?.state.isWaiting != true { admission.returned += 1 }
                admission.grown += max(0, row.size - (change.before?.size ?? 0))
            }
            admissions[row.owner] = admission
        }
        var waiting: [UInt32: Int] = [:]
        var bytes: [UInt32: Int64] = [:]
        for (key, value) in counts {
            if key.state.isWaiting { waiting[key.owner, default: 0] += value.jobs }
            bytes[key.owner, default: 0] += value.bytes
        }
        let settings = world.scenario.settings
        for (owner, admission) in admissions where admission.jobs > 0 {
            let jobs = (waiting[owner] ?? 0) - admission.returned
            world.expect(
                jobs <= settings.limits.queuedJobsPerUser, 4,
                "User \(owner) has \(jobs) jobs waiting, and \(settings.limits.queuedJobsPerUser) are allowed.")
            let stored = (bytes[owner] ?? 0) - admission.grown
            world.expect(
                stored <= settings.storedPerUser, 4,
                "User \(owner) has \(stored) bytes stored, and \(settings.storedPerUser) are allowed.")
        }
        let all = waiting.values.reduce(0, +) - admissions.values.reduce(0) { $0 + $1.returned }
        world.expect(
            all <= settings.limits.queuedJobs, 4,
            "\(all) jobs are waiting, and \(settings.limits.queuedJobs) are allowed.")
    }
}

extension JobState {
    fileprivate var isWaiting: Bool { self == .scheduled || self == .held || self == .queued }
}
