public import JobModel
import JobProtocol

/// A notification of a watch.
public struct JobEvent: Sendable, Hashable {
    /// The progress, the new state, or new output of a job.
    public enum Change: Sendable, Hashable {
        /// The job made progress; `coalesced` is the number of reports merged into this one.
        case progress(JobProgress, link: Int, links: Int, coalesced: Int)
        /// The job has this state or link; its last state has its result or error.
        case state(JobSnapshot)
        /// An attempt of the job's program has written `size` bytes so far, which `job.output` reads.
        case output(link: Int, attempt: Int, size: Int64)
    }

    /// The watch's name.
    public let watch: String
    /// The job's id.
    public let job: Int64
    /// A number that grows with each notification of the watch about the job; 0 for output.
    public let seq: Int
    /// What happened.
    public private(set) var change: Change
    /// The length of the line.
    let size: Int

    init?(_ method: JobNotification.Method, _ params: JSONObject, size: Int) {
        guard let watch = params["watch"]?.string, let job = params["job"]?.int,
            let seq = params["seq"]?.int ?? (method == .output ? 0 : nil)
        else { return nil }
        (self.watch, self.job, self.seq, self.size) = (watch, Int64(job), seq, size)
        switch method {
        case .state:
            guard let snapshot = params["snapshot"].flatMap(JobSnapshot.init) else { return nil }
            change = .state(snapshot)
        case .progress:
            guard let progress = params["progress"].flatMap(JobProgress.init) else { return nil }
            change = .progress(
                progress, link: params["link"]?.int ?? 0, links: params["links"]?.int ?? 0,
                coalesced: params["coalesced"]?.int ?? 0)
        case .output:
            guard let link = params["link"]?.int, let attempt = params["attempt"]?.int, let size = params["size"]?.int
            else { return nil }
            change = .output(link: link, attempt: attempt, size: Int64(size))
        }
    }

    /// An event that did not come as a notification, such as the state in the answer to a watch.
    package init(watch: String, job: Int64, _ change: Change) {
        (self.watch, self.job, self.change, seq, size) = (watch, job, change, 0, 0)
    }

    /// The notification in JSON-RPC.
    public var json: JSON {
        var params: JSONObject = ["watch": watch.json, "job": job.json]
        if !isOutput { params["seq"] = seq.json }
        let method: JobNotification.Method
        switch change {
        case .progress(let progress, let link, let links, let coalesced):
            method = .progress
            params["link"] = link.json
            params["links"] = links.json
            params["progress"] = progress.json
            params["coalesced"] = coalesced.json
        case .state(let snapshot):
            method = .state
            params["state"] = snapshot.state.json
            params["snapshot"] = snapshot.json
        case .output(let link, let attempt, let size):
            method = .output
            params["link"] = link.json
            params["attempt"] = attempt.json
            params["size"] = Int(size).json
        }
        return ["jsonrpc": "2.0", "method": method.rawValue.json, "params": .object(params)]
    }

    /// Whether it tells of output.
    package var isOutput: Bool { if case .output = change { true } else { false } }

    /// This progress or output merged with an `earlier` one that was not read; nil if either is a state.
    func merging(_ earlier: JobEvent) -> JobEvent? {
        if isOutput, earlier.isOutput { return self }
        guard case .progress(_, _, _, let before) = earlier.change,
            case .progress(let progress, let link, let links, let coalesced) = change
        else { return nil }
        var merged = self
        merged.change = .progress(progress, link: link, links: links, coalesced: before + 1 + coalesced)
        return merged
    }
}
