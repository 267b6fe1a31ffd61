import JobModel
import JobProtocol

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
