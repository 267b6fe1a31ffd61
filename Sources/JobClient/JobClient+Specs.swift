public import JobModel

extension JobClient {
    /// A job spec made of values; ``json`` is the same as JSON, for members that are missing here.
    public struct Spec: Sendable, Hashable {
        /// The job's own source.
        public var source: Source
        /// The links after it, as JSON.
        public var links: [JSON] = []
        /// The queue; nil for `default`.
        public var queue: String?
        /// Jobs with a higher priority start first: -1000 to 1000.
        public var priority: Int?
        /// The seconds before the job may start.
        public var delay: Double?
        /// The seconds that one attempt may take.
        public var timeout: Double?
        /// The seconds in which the whole job must end.
        public var deadline: Double?
        /// The number of retries after the first attempt; nil for the daemon's choice.
        public var retries: Int?
        /// The same spec with the same key is one job.
        public var key: String?
        /// Tags to list and watch by.
        public var tags: [String] = []
        /// The name of the job in lists.
        public var label: String?

        /// A job that consists of its source.
        public init(_ source: Source) { self.source = source }

        /// The spec with another step after a success; `{{input/…}}` in its strings is a part of the result before it.
        public func then(_ step: Source) -> Spec { adding(["then": ["source": step.json]]) }

        /// The spec with a step after a failure, or after a failure of one of these `kinds`; `{{error/…}}` is a part of it.
        public func fail(_ step: Source, on kinds: [String]? = nil) -> Spec {
            adding(.object(["fail": ["source": step.json], "on": kinds?.json]))
        }

        /// The spec with a step that runs in any case, even after a cancellation.
        public func finally(_ step: Source) -> Spec { adding(["finally": ["source": step.json]]) }

        private func adding(_ link: JSON) -> Spec {
            var spec = self
            spec.links.append(link)
            return spec
        }

        /// The spec as JSON.
        public var json: JSON {
            .object([
                "source": source.json, "then": links.isEmpty ? JSON?.none : .array(links), "queue": queue?.json,
                "priority": priority?.json, "delay": delay?.json, "timeout": timeout?.json,
                "deadline": deadline?.json, "retry": retries.map { ["max": $0.json] }, "key": key?.json,
                "tags": tags.isEmpty ? JSON?.none : tags.json, "label": label?.json,
            ])
        }
    }

    /// The work of a job or of a step; members that are missing here can be written as JSON.
    public indirect enum Source: Sendable, Hashable {
        /// A request; `body` is sent as JSON, by POST.
        case url(String, headers: [String: String] = [:], body: JSON? = nil)
        /// The JSON of a response, or the value at a pointer in it.
        case document(String, select: String? = nil)
        /// A file, which the server names if the path ends in a slash; `exists` is "fail", "replace", "rename", "skip" or
        /// "validate".
        case download(String, to: String, exists: String? = nil, checksum: String? = nil)
        /// A program of the daemon's configuration.
        case program(String, arguments: [String] = [], input: JSON? = nil)
        /// A command line, whose first element is an absolute path.
        case command([String], input: JSON? = nil)
        /// Children; `mode` is "settled", "all" or "first".
        case list([Spec], mode: String? = nil, concurrency: Int? = nil)
        /// A value.
        case value(JSON)
        /// Any source, as JSON.
        case json(JSON)

        /// The source as JSON.
        public var json: JSON {
            switch self {
            case .url(let url, let headers, let body):
                .object([
                    "type": "url", "url": url.json, "json": body,
                    "headers": headers.isEmpty
                        ? JSON?.none
                        : .object(headers.sorted { $0.key < $1.key }.reduce(into: [:]) { $0[$1.key] = $1.value.json }),
                ])
            case .document(let url, let select):
                .object(["type": "json", "url": url.json, "select": select?.json])
            case .download(let url, let path, let exists, let checksum):
                .object([
                    "type": "download", "url": url.json, "path": path.json, "exists": exists?.json,
                    "checksum": checksum?.json,
                ])
            case .program(let name, let arguments, let input):
                .object(["type": "program", "program": name.json, "arguments": arguments.json, "input": input])
            case .command(let line, let input):
                .object(["type": "program", "command": line.json, "input": input])
            case .list(let jobs, let mode, let concurrency):
                .object([
                    "type": "list", "jobs": .array(jobs.map(\.json)), "mode": mode?.json,
                    "concurrency": concurrency?.json,
                ])
            case .value(let value): ["type": "value", "value": value]
            case .json(let source): source
            }
        }
    }

    /// Submits a job. With `watch`, its events come through ``notifications``.
    public func submit(_ spec: Spec, watch: Bool = false) async throws(JobClientError) -> Submission {
        try await submit(spec.json, watch: watch)
    }
}
