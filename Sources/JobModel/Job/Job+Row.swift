/// Jobs as they are shown, made of their rows.
extension Job {
    /// The job of a row. A value in a file is left there: ``storedResult`` says how long it is.
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

    /// The job of a row with what is stored of its spec. What is in files of it is not shown.
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
    /// The job as it is shown.
    package var job: Job { Job(row, document: document, template: template) }
}
