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

extension JobClient {
    /// A piece of what a job's program has written.
    public struct OutputPiece: Sendable, Hashable {
        /// Bytes that one stream got in a row.
        public struct Record: Sendable, Hashable {
            /// Whether the bytes are from standard error.
            public let isError: Bool
            /// The bytes.
            public let bytes: [UInt8]
        }

        /// The bytes, in the order in which they were written.
        public let records: [Record]
        /// The position of the following piece.
        public let next: Int64
        /// Whether nothing of this attempt follows.
        public let isLast: Bool
        /// The number of bytes of this attempt that the daemon has dropped so far.
        public let omitted: Int64
    }

    /// Reads at most 256 KiB of the output of an attempt of a program, from `offset` on.
    ///
    /// - Parameters:
    ///   - link: The program's link, by default that of the latest program.
    ///   - attempt: The attempt, by default the latest.
    ///   - offset: The position among all bytes of both streams; a negative one counts from the end.
    ///   - wait: Seconds to wait for output if there is none, at most 60.
    public func output(
        of job: Int64, link: Int? = nil, attempt: Int? = nil, from offset: Int64 = 0, wait: Double = 0
    ) async throws(JobClientError) -> OutputPiece {
        let answer = try await call(
            .jobOutput,
            [
                "job": job.json, "link": link?.json, "attempt": attempt?.json, "offset": Int(offset).json,
                "wait": wait.json,
            ])
        return OutputPiece(
            records: try answer.member("records", of: .jobOutput) { $0.array?.compactMap(OutputPiece.Record.init) },
            next: Int64(try answer.member("next", of: .jobOutput) { $0.int.flatMap { $0 >= 0 ? $0 : nil } }),
            isLast: try answer.member("end", of: .jobOutput, \.bool),
            omitted: Int64(try answer.member("omitted", of: .jobOutput, \.int)))
    }
}

extension JobClient.OutputPiece.Record {
    fileprivate init?(_ json: JSON) {
        guard let bytes = json["text"]?.string.map({ Array($0.utf8) }) ?? json["base64"]?.string.flatMap(Base64.decode)
        else { return nil }
        self.init(isError: json["stream"] == "err", bytes: bytes)
    }
}
