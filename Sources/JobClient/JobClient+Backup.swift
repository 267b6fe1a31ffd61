import JobModel
import JobProtocol

extension JobClient {
    /// Has the daemon copy its state, which only administrators may do; the size of the copy in bytes. Its pieces are read
    /// over the same connection with ``backupPiece(offset:)``.
    public func backUp() async throws(JobClientError) -> Int {
        guard let size = try await call(.serverBackup)["size"]?.int else { throw .malformed(.serverBackup, "size") }
        return size
    }

    /// Reads at most 256 KiB of the copy that this connection had made last, from `offset` on.
    public func backupPiece(offset: Int) async throws(JobClientError) -> ResultPiece {
        let params = JSONObject([JSONObject.Member(name: "offset", value: JSON(offset))])
        return try ResultPiece(.serverBackup, try await call(.serverBackup, params), at: offset)
    }
}
