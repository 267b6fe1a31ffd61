/// What became of one job that was submitted.
package enum Submission: Sendable, Equatable {
    /// It was stored under this number.
    case created(JobID)
    /// Its key and spec are those of this earlier job.
    case joined(JobID, JobState)
    /// Its key belongs to this job, which has another spec; the new one was not stored.
    case conflict(JobID)
}
