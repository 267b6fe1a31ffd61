/// Jobs as clients see them, built from rows.
extension Job {
    /// Creates a job from a row; a value in a file stays there, and ``storedResult`` is its size.
    private init(_ row: JobRow, spec: JobSpec) {
        self.init(id: row.id, spec: spec, owner: row.owner, state: row.state, createdAt: row.createdAt)
        parent = row.parent?.job
        notBefore = row.notBefore
        startedAt = row.startedAt
        finishedAt = row.finishedAt
        link = row.link
        attempt = row.attempt
        outcomes = row.outcomes
        lastFailure = row.lastFailure
        children = row.children
        switch row.carried {
        case .success(.inline(let text)): carried = .success(JSON(stored: text))
        case .success(.file(let blob)):
            carried = .success(.null)
            storedResult = Int(clamping: blob.size)
        case .failure(let error): carried = .failure(error)
        case nil: break
        }
    }

    /// Creates a job from a row and its stored spec; parts of the spec in files are omitted.
    package init(_ row: JobRow, document: NewJobRow.Document?, template: StoredValue?) {
        let spec: JobSpec?
        switch (document, template) {
        case (.spec(let text), _): spec = try? JobSpecReader.stored(JSON(stored: text))
        case (.item(.inline(let item)), .inline(let template)?):
            spec = try? JobSpecReader.child(
                of: JSON(stored: template), item: JSON(stored: item), index: row.parent?.index ?? 0, queue: row.queue,
                priority: row.priority)
        default: spec = nil
        }
        self.init(row, spec: spec ?? JobSpec(unreadOf: row))
    }
}

extension StoredJob {
    /// The job as clients see it.
    package var job: Job { Job(row, document: document, template: template) }
}
