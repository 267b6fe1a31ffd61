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
    private let method: JobNotification.Method
    private var params: JSONObject

    init?(_ method: JobNotification.Method, _ params: JSONObject, size: Int) {
        guard let watch = params["watch"]?.string, let job = params["job"]?.int,
            let seq = params["seq"]?.int ?? (method == .output ? 0 : nil)
        else { return nil }
        (self.watch, self.job, self.seq, self.size) = (watch, Int64(job), seq, size)
        (self.method, self.params) = (method, params)
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

    /// The state in the answer to a watch, as an event.
    package init(watch: String, _ snapshot: JobSnapshot) {
        (self.watch, job, change, seq, size, method) = (watch, snapshot.id, .state(snapshot), 0, 0, .state)
        params = [
            "watch": watch.json, "job": job.json, "seq": 0, "state": snapshot.state.json, "snapshot": snapshot.json,
        ]
    }

    /// The notification in JSON-RPC.
    public var json: JSON { ["jsonrpc": "2.0", "method": method.rawValue.json, "params": .object(params)] }

    package var isOutput: Bool { method == .output }

    /// This progress or output merged with an `earlier` one that was not read; nil if either is a state.
    func merging(_ earlier: JobEvent) -> JobEvent? {
        if isOutput, earlier.isOutput { return self }
        guard case .progress(_, _, _, let before) = earlier.change,
            case .progress(let progress, let link, let links, let coalesced) = change
        else { return nil }
        var merged = self
        merged.change = .progress(progress, link: link, links: links, coalesced: before + 1 + coalesced)
        merged.params["coalesced"] = (before + 1 + coalesced).json
        return merged
    }
}
