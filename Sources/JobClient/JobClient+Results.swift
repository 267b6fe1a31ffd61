import JobModel
import JobProtocol

extension JobClient {
    /// A piece of a result's body.
    public struct ResultPiece: Sendable, Hashable {
        /// The bytes.
        public let bytes: [UInt8]
        /// Where they begin.
        public let offset: Int
        /// The size of the whole.
        public let size: Int
        /// Whether nothing follows.
        public let isLast: Bool
    }

    /// Reads at most 256 KiB of a result's body (of a result without one: its JSON text), from `offset` on.
    public func resultPiece(
        of job: Int64, offset: Int = 0, length: Int? = nil
    ) async throws(JobClientError) -> ResultPiece {
        let answer = try await call(.jobResult, ["job": job.json, "offset": offset.json, "length": length?.json])
        return try ResultPiece(.jobResult, answer, at: offset)
    }

    /// The job with the result that the daemon left out for its length; as it is where nothing was left out.
    ///
    /// A response whose body makes it long stays as it is: its body is read with ``result(of:from:)``.
    public func completed(_ job: JobSnapshot) async throws(JobClientError) -> JobSnapshot {
        guard job.result == nil, let size = job.resultSize, var object = job.json.object else { return job }
        var text: [UInt8] = []
        var pieces = result(of: job.id).makeAsyncIterator()
        while let piece = try await pieces.next() {
            // A different size shows that it is a body, which is shorter than the JSON around it.
            guard piece.size == size else { return job }
            text += piece.bytes
        }
        guard let result = try? JSON(parsing: text, maximumDepth: 256) else { throw .malformed(.jobResult, "data") }
        object["result"] = result
        object["resultSize"] = nil
        return JobSnapshot(.object(object)) ?? job
    }

    /// A result's body (of a result without one: its JSON text), piece by piece.
    ///
    /// The next piece is asked for when it is read, so no more than one is in memory.
    public func result(of job: Int64, from offset: Int = 0) -> ResultPieces {
        ResultPieces(client: self, job: job, offset: offset)
    }

    /// The pieces of a result's body, in order.
    public struct ResultPieces: AsyncSequence, AsyncIteratorProtocol, Sendable {
        /// What the sequence throws.
        public typealias Failure = JobClientError

        fileprivate let client: JobClient
        fileprivate let job: Int64
        fileprivate var offset: Int?

        /// The next piece, which the daemon is asked for, or nil after the last.
        public mutating func next() async throws(JobClientError) -> ResultPiece? {
            guard let offset else { return nil }
            let piece = try await client.resultPiece(of: job, offset: offset)
            self.offset = piece.isLast ? nil : offset + piece.bytes.count
            return piece
        }

        /// Begins where the sequence does.
        public func makeAsyncIterator() -> ResultPieces { self }
    }
}

extension JobClient.ResultPiece {
    /// The piece in the answer to a call of `method`.
    init(_ method: MethodName, _ answer: JSON, at offset: Int) throws(JobClientError) {
        let bytes = try answer.member("data", of: method) { $0.string.flatMap(Base64.decode) }
        let size = try answer.member("size", of: method, \.int)
        let isLast = try answer.member("eof", of: method, \.bool)
        // Without this check a daemon that sends nothing and promises more would be asked for ever.
        guard isLast || !bytes.isEmpty else { throw .malformed(method, "eof") }
        self.init(bytes: bytes, offset: answer["offset"]?.int ?? offset, size: size, isLast: isLast)
    }
}
