public import JobModel
import JobProtocol

/// A notification of a watch: a job came further, or its state or link changed.
public struct JobEvent: Sendable, Hashable {
    /// What happened.
    public enum Change: Sendable, Hashable {
        /// The job made progress; `coalesced` counts the reports that were merged into this one.
        case progress(JobProgress, link: Int, links: Int, coalesced: Int)
        /// The job is in this state, or at another link; the last one of a job holds its result or error.
        case state(JobSnapshot)
    }

    /// The watch that it belongs to.
    public let watch: String
    /// The job's id.
    public let job: Int64
    /// Grows with each notification of that watch about that job.
    public let seq: Int
    /// What happened.
    public private(set) var change: Change
    /// The length of the line that brought it.
    let size: Int

    init?(_ method: JobNotification.Method, _ params: JSONObject, size: Int) {
        guard let watch = params["watch"]?.string, let job = params["job"]?.int, let seq = params["seq"]?.int else {
            return nil
        }
        self.watch = watch
        self.job = Int64(job)
        self.seq = seq
        self.size = size
        switch method {
        case .state:
            guard let snapshot = params["snapshot"].flatMap(JobSnapshot.init) else { return nil }
            change = .state(snapshot)
        case .progress:
            guard let progress = params["progress"].flatMap(JobProgress.init) else { return nil }
            change = .progress(
                progress, link: params["link"]?.int ?? 0, links: params["links"]?.int ?? 0,
                coalesced: params["coalesced"]?.int ?? 0)
        }
    }

    /// What no notification told, such as the state in the answer to a watch.
    package init(watch: String, job: Int64, _ change: Change) {
        (self.watch, self.job, self.change, seq, size) = (watch, job, change, 0, 0)
    }

    /// The notification as JSON-RPC writes it.
    public var json: JSON {
        var params: JSONObject = ["watch": watch.json, "job": job.json, "seq": seq.json]
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
        }
        return ["jsonrpc": "2.0", "method": method.rawValue.json, "params": .object(params)]
    }

    /// This progress instead of `earlier`, which nobody had read yet; nil where one of them is no progress.
    func merging(_ earlier: JobEvent) -> JobEvent? {
        guard case .progress(_, _, _, let before) = earlier.change,
            case .progress(let progress, let link, let links, let coalesced) = change
        else { return nil }
        var merged = self
        merged.change = .progress(progress, link: link, links: links, coalesced: before + 1 + coalesced)
        return merged
    }
}
