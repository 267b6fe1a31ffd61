/// A transfer that its job will resume.
package struct UnfinishedTransfer: Sendable, Hashable {
    package let job: JobID
    package let owner: UInt32
    package let link: Int
    package let checkpoint: JSON

    package init(job: JobID, owner: UInt32, link: Int, checkpoint: JSON) {
        self.job = job
        self.owner = owner
        self.link = link
        self.checkpoint = checkpoint
    }
}
