import JobCore
import JobModel

/// What steps need of the engine, on any thread.
extension Engine {
    /// Reads rows or a file of a job, whose error tells what cannot be read.
    func read<Value>(
        _ rows: @autoclosure () -> String, _ body: (any JobReader) throws(StoreError) -> Value
    ) throws(JobError) -> Value {
        do throws(StoreError) { return try body(reader) } catch {
            throw JobError(.storage, "\(rows()) cannot be read: \(error.message)", retryable: error.mayPass)
        }
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

    /// The complete text of a value.
    func text(of value: StoredValue) throws(JobError) -> [UInt8] {
        switch value {
        case .inline(let text): return text
        case .file(let blob):
            return try read("A value of \(blob.size) bytes") { _ throws(StoreError) in try blobs.read(blob) }
        }
    }

    func value(of stored: StoredValue) throws(JobError) -> JSON {
        let text = try text(of: stored)
        do {
            return try JSON(parsing: text, maximumDepth: 512, budget: JobLimits.mostValues)
        } catch {
            throw JobError(.tooLarge, "A stored value cannot be used: \(error.reason); select less of it.")
        }
    }

    /// The end of a run with this outcome and its last progress, and why its files could not be stored.
    func end(
        of run: RunID, _ outcome: Outcome, _ last: JobProgress, body: BlobReference?, room: Int64, url: String?
    ) -> (result: Expansion.Result, obstacle: JobError?) {
        var archived: BlobReference?
        func ended(_ outcome: Carried, _ body: BlobReference? = nil) -> Expansion.Result {
            .event(.ended(RunEnd(outcome, body: body, bytes: last.bytes, output: archived, url: url)))
        }
        do throws(JobError) {
            if last.output != nil {
                let output = blobs.measured(run.output())
                // Its file is needed until the end is stored: after a crash, it is archived again.
                try blobs.archive(output, keepsFile: true)
                archived = output
            }
            let value = try outcome.get()
            let stored = try stored(value.utf8, room: room)
            if let body { try blobs.archive(body) }
            return (ended(.success(stored), body), nil)
        } catch {
            guard case .failure(let own) = outcome else { return (ended(.failure(error)), error) }
            return (ended(.failure(own)), own == error ? nil : error)
        }
    }
}
