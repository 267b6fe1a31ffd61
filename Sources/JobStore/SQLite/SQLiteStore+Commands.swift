package import JobModel

extension SQLiteStore {
    package func write(_ write: StoreWrite, _ done: @escaping @Sendable (Result<StoreWritten, StoreError>) -> Void) {
        switch write {
        case .submit(let jobs): enqueue(done) { .submitted(try $0.submit(jobs)) }
        case .children(let children): enqueue(done) { .numbered(try $0.insert(children)) }
        case .save(let jobs):
            let settled: @Sendable (Result<StoreWritten, StoreError>) -> Void = { [marks] result in
                if case .success = result { marks.settle(jobs) }
                done(result)
            }
            enqueue(settled) { writer in
                try writer.save(jobs)
                return .done
            }
        case .remove(let job): remove(job) { done($0.map(StoreWritten.removed)) }
        case .removeChildren(let parent, let link):
            removeChildren(of: parent, fromLink: link) { done($0.map(StoreWritten.removed)) }
        case .purge(let time, let count, let limit):
            purge(finishedBefore: time, keeping: count, atMost: limit) { done($0.map(StoreWritten.removed)) }
        case .purgeOldest(let count, let bytes, let owner):
            purgeOldest(count, freeing: bytes, of: owner) { done($0.map(StoreWritten.removed)) }
        case .queue(let queue):
            enqueue(done) { writer in
                try writer.save(queue)
                return .done
            }
        case .setSchedule(let schedule, let spec):
            enqueue(done) { writer in
                try writer.set(schedule, spec: spec)
                return .done
            }
        case .advance(let schedule, let job): enqueue(done) { .submitted(try $0.advance(schedule, job)) }
        case .removeSchedule(let key):
            enqueue(done) { writer in
                try writer.remove(key)
                return .done
            }
        case .probe:
            enqueue(done) { writer in
                try writer.probe()
                return .done
            }
        }
    }

    package func read(_ read: StoreRead, _ done: @escaping @Sendable (Result<StoreRows, StoreError>) -> Void) {
        self.read(for: read.owner, { [marks] reader in try reader.rows(read, marks) }, done)
    }

    package func mark(_ job: JobID, isWorking: Bool) { marks.mark(job, isWorking: isWorking) }
}

extension Reader {
    fileprivate func rows(_ read: StoreRead, _ marks: CrashMarks) throws -> StoreRows {
        switch read {
        case .recovery: .recovery(try recovery(marks))
        case .jobs(let ids, let owner): .jobs(try jobs(ids, owner: owner))
        case .firstJobs(let ids, let owner): .jobs(try page(ids, owner: owner).jobs)
        case .states(let ids, let owner): .states(try states(of: ids, owner: owner))
        case .list(let filter): .jobs(try page(filter).jobs)
        case .result(let job, let offset, let length):
            .result(try result(of: job, offset: offset, length: length))
        case .children(let parent, let link, let start, let limit):
            .jobs(try children(of: parent, link: link, from: start, limit: limit).jobs)
        case .childStates(let parent, let link): .childStates(try childStates(of: parent, link: link))
        case .gated(let parent, let link, let start, let limit):
            .ready(try gated(of: parent, link: link, from: start, limit: limit))
        case .orphans(let limit): .jobs(try orphans(limit: limit))
        case .ready(let queue, let owner, let position, let hosts, let limit):
            .ready(try ready(queue: queue, owner: owner, after: position, excluding: hosts, limit: limit))
        case .due(let time, let limit): .jobs(try due(at: time, limit: limit))
        case .overdue(let time, let limit): .jobs(try overdue(at: time, limit: limit))
        case .times: .times(try times())
        case .schedule(let key): .schedules(try schedule(key))
        case .schedules(let key, let owner, let limit):
            .schedules(try schedules(after: key, owner: owner, limit: limit))
        }
    }

    private func recovery(_ marks: CrashMarks) throws -> StoredState {
        let crashed = try jobs(marks.jobs).filter { !$0.state.isTerminal }
        marks.keepOfLastLife(crashed)
        return StoredState(
            counts: try counts(), queues: try queues(), running: try interrupted(), crashed: crashed,
            times: try times(), schedules: try schedules())
    }

    private func times() throws -> StoredTimes {
        let next = try nextTimes()
        let ends = try ends()
        return StoredTimes(due: next.due, deadline: next.deadline, firstEnd: ends.first, lastEnd: ends.last)
    }
}
