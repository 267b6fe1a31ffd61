import JobModel
import JobProtocol

extension JobClient {
    /// A piece of a result's body, of at most 256 KiB.
    public struct ResultPiece: Sendable, Hashable {
        /// The bytes.
        public let bytes: [UInt8]
        /// The position of the first byte.
        public let offset: Int
        /// The size of the whole.
        public let size: Int
        /// Whether this is the last piece.
        public let isLast: Bool
    }

    /// The job with its whole result, if that was too long for the job object.
    ///
    /// A response with a long body stays as it is: ``result(of:from:)`` reads its body.
    public func completed(_ job: JobSnapshot) async throws(JobClientError) -> JobSnapshot {
        guard job.result == nil, let size = job.resultSize, var object = job.json.object else { return job }
        var text: [UInt8] = []
        var pieces = result(of: job.id).makeAsyncIterator()
        while let piece = try await pieces.next() {
            // Another size means that it is a body, which is shorter than the JSON around it.
            guard piece.size == size else { return job }
            text += piece.bytes
        }
        guard let result = try? JSON(parsing: text, maximumDepth: 256) else { throw .malformed(.jobResult, "data") }
        object["result"] = result
        object["resultSize"] = nil
        return JobSnapshot(.object(object)) ?? job
    }

    /// A result's body, or its JSON text if it has no body, piece by piece.
    ///
    /// Each piece is requested when it is read, so at most one is in memory.
    public func result(of job: Int64, from offset: Int = 0) -> ResultPieces {
        ResultPieces(client: self, job: job, offset: offset)
    }

    /// The pieces of a result's body, in order.
    public struct ResultPieces: AsyncSequence, AsyncIteratorProtocol, Sendable {
        /// The type of error that the sequence throws.
        public typealias Failure = JobClientError

        fileprivate let client: JobClient
        fileprivate let job: Int64
        fileprivate var offset: Int?

        /// The next piece, or nil after the last.
        public mutating func next() async throws(JobClientError) -> ResultPiece? {
            guard let offset else { return nil }
            let answer = try await client.call(.jobResult, ["job": job.json, "offset": offset.json])
            let piece = try ResultPiece(.jobResult, answer, at: offset)
            self.offset = piece.isLast ? nil : offset + piece.bytes.count
            return piece
        }

        /// The iterator, which is this sequence itself.
        public func makeAsyncIterator() -> ResultPieces { self }
    }
}

extension JobClient.ResultPiece {
    init(_ method: MethodName, _ answer: JSON, at offset: Int) throws(JobClientError) {
        let bytes = try answer.member("data", of: method) { $0.string.flatMap(Base64.decode) }
        let size = try answer.member("size", of: method, \.int)
        let isLast = try answer.member("eof", of: method, \.bool)
        // Empty pieces could go on for ever.
        guard isLast || !bytes.isEmpty else { throw .malformed(method, "eof") }
        self.init(bytes: bytes, offset: answer["offset"]?.int ?? offset, size: size, isLast: isLast)
    }
}
