import JobCore
import JobModel
import Synchronization

/// What steps need of the engine, on any thread.
extension Engine {
    /// Whether a queue accepts jobs.
    func takesJobs(_ queue: String) -> Bool {
        published.withLock { $0.queues.contains { $0.takesJobs && $0.settings.name == queue } }
    }

    /// A JSON text as it is stored: in the row, or if it is long in a file, which blocks.
    func stored(_ text: [UInt8], room: Int64 = .max) throws(JobError) -> StoredValue {
        guard text.count > limits.inlineResult else { return .inline(text) }
        guard text.count <= room else {
            throw JobError(
                .tooLarge,
                "The result of \(text.count) bytes cannot be kept, as there is room for \(max(0, room)) bytes more "
                    + "of your jobs; remove some finished ones, then retry the job.")
        }
        return .file(try blobs.write(text))
    }

    /// Reads and parses a stored value.
    func value(of stored: StoredValue) throws(JobError) -> JSON {
        let text = try blobs.text(of: stored)
        do {
            return try JSON(parsing: text, maximumDepth: 512, budget: JobLimits.mostValues)
        } catch {
            throw JobError(.tooLarge, "A stored value cannot be used: \(error.reason); select less of it.")
        }
    }

    /// The end of a run that takes over the result of another job.
    func end(adopting value: StoredValue, body: BlobReference?) -> RunEnd {
        do throws(JobError) {
            var value = value
            if case .file(let blob) = value { value = .file(try blobs.link(blob)) }
            return RunEnd(.success(value), body: try body.map(blobs.link))
        } catch {
            return RunEnd(.failure(error))
        }
    }

    /// The end of a run with this outcome, which has received so many bytes.
    func end(
        _ outcome: Outcome, room: Int64, body: BlobReference? = nil, bytes: Int64 = 0, output: BlobReference? = nil,
        url: String? = nil
    ) -> RunEnd {
        do throws(JobError) {
            let value = try outcome.get()
            return RunEnd(
                .success(try stored(value.utf8, room: room)), body: body, bytes: bytes, received: bytes, output: output,
                url: url)
        } catch {
            return RunEnd(.failure(error), bytes: bytes, received: bytes, output: output, url: url)
        }
    }
}
