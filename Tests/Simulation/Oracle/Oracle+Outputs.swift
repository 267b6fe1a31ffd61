import InMemoryStore
import JobCore
import JobModel

/// The files with the output of programs: a row names each of them, or the core unlinks it.
struct OutputFiles {
    /// The files that rows name, and the jobs of these.
    fileprivate var named: [String: JobID] = [:]
    /// Files that the effects of the current round must unlink. After a crash, the next daemon sweeps them away.
    fileprivate var dropped: Set<String> = []

    /// Forgets what effects that were not carried out owe.
    mutating func daemonDied() { dropped = [] }
}

extension Oracle {
    /// Checks the files after a committed round with these inputs.
    func checkOutputs(_ inputs: [CoreInput], _ changes: [RowChange<JobID, JobRow>], _ world: World) {
        func names(_ row: JobRow?) -> Set<String> { Set(row?.blobs.lazy.filter(\.isOutput).map(\.blob.name) ?? []) }
        for change in changes {
            let (old, new) = (names(change.before), names(change.after))
            // Files that were measured and not found have no size.
            let unmeasured = Set(change.before?.blobs.lazy.filter { $0.blob.size == 0 }.map(\.blob.name) ?? [])
            for name in old.subtracting(new) {
                outputs.named[name] = nil
                if !unmeasured.contains(name), !excused.contains(change.id) { outputs.dropped.insert(name) }
            }
            for name in new.subtracting(old) { outputs.named[name] = change.id }
        }
        // Files of a life that is over are swept away.
        for case .run(let run, .ended(let end)) in inputs where run.life == world.life {
            guard let name = end.output?.name, outputs.named[name] == nil else { continue }
            if let job = world.engine.runs[run]?.live.job, excused.contains(job) { continue }
            outputs.dropped.insert(name)
        }
    }

    func unlinks(_ blobs: [BlobReference], _ world: World) {
        for blob in blobs {
            outputs.dropped.remove(blob.name)
            if let job = outputs.named[blob.name] {
                world.fail(1, "The output \(blob.name) of job \(job) is unlinked, and its row names it.")
            }
        }
    }

    func lookForOutputs(_ world: World) {
        if let name = outputs.dropped.min() {
            world.fail(1, "No row names the output \(name) any more, and it was not unlinked.")
        }
    }
}
