import InMemoryStore
import JobCore
import JobModel

/// What goes into the trace of a run.
extension World {
    func traceInput(_ input: CoreInput) {
        let time = clock.elapsed
        switch input {
        case .start: trace.add(.start, at: time, Int64(life))
        case .request(let id, let request, let caller):
            let (kind, job) = request.traced
            trace.add(.request, at: time, id, kind, job ^ Int64(caller.uid) << 40)
        case .abandon(let id): trace.add(.abandon, at: time, id)
        case .unsubscribe(let id): trace.add(.unsubscribe, at: time, id)
        case .written(let id, .success): trace.add(.written, at: time, id)
        case .written(let id, .failure): trace.add(.writeFailed, at: time, id)
        case .rows(let id, .success(let rows)): trace.add(.rows, at: time, id, rows.tracedCount)
        case .rows(let id, .failure): trace.add(.readFailed, at: time, id)
        case .progress(let reports): trace.add(.progress, at: time, reports.first?.run ?? 0, Int64(reports.count))
        case .ended(let run, let outcome, _, _, _): trace.add(.ended, at: time, run, outcome.isSuccess ? 1 : 0)
        case .refused(let run, _): trace.add(.connectionRefused, at: time, run)
        case .cleanedUp(let id): trace.add(.cleanedUp, at: time, id)
        case .checked(let id, let result): trace.add(.checked, at: time, id, result.isSuccess ? 1 : 0)
        case .room, .time: trace.add(.time, at: time)
        case .users: trace.add(.time, at: time, 2)
        case .zones: trace.add(.time, at: time, 1)
        case .resume: trace.add(.resume, at: time)
        case .turn(let owner): trace.add(.resume, at: time, Int64(owner))
        case .stop: trace.add(.stop, at: time)
        }
    }

    func traceEffect(_ effect: CoreEffect) {
        let time = clock.elapsed
        switch effect {
        case .write(let id, let write):
            let (kind, job) = write.traced
            trace.add(.write, at: time, id, kind, job)
        case .read(let id, let read): trace.add(.read, at: time, id, read.traced)
        case .mark(let job, let isWorking): trace.add(.mark, at: time, job, isWorking ? 1 : 0)
        case .start(let run):
            trace.add(.startRun, at: time, run.run, run.job, Int64(run.link) << 16 | Int64(run.attempt))
        case .cancel(let run, _): trace.add(.cancelRun, at: time, run)
        case .discardParts(let id, let job, let links, _):
            trace.add(.discardParts, at: time, id, job, Int64(links.lowerBound))
        case .cleanUp(let id, let removed): trace.add(.cleanUp, at: time, id, Int64(removed.count))
        case .check(let id, let spec): trace.add(.check, at: time, id, Int64(spec.schedule.owner))
        case .answer(let id, .failed(let error)): trace.add(.refused, at: time, id, error.traced)
        case .answer(let id, let answer): trace.add(.answer, at: time, id, answer.traced)
        case .notify(let subscriptions, let change):
            trace.add(
                .notify, at: time, change.job, Int64(change.state.number) << 16 | Int64(change.snapshot.job.link),
                Int64(subscriptions.count))
        case .progress(let subscriptions, let rows):
            trace.add(.report, at: time, Int64(subscriptions.count), Int64(rows.count), rows.first?.job ?? 0)
        case .started(.success): trace.add(.started, at: time)
        case .started(.failure): trace.add(.notStarted, at: time)
        case .readZones(let names): trace.add(.yield, at: time, Int64(names.count))
        case .yield: trace.add(.yield, at: time)
        case .turn(let owner): trace.add(.yield, at: time, Int64(owner), 1)
        case .log(let log):
            trace.add(.log, at: time, log.job ?? 0, Int64(log.message.utf8.count))
            if trace.prints { print("    \(log.level): \(log.message)") }
        }
    }
}

extension Result {
    var isSuccess: Bool { if case .success = self { true } else { false } }
}

extension CoreRequest {
    fileprivate var traced: (Int64, Int64) {
        switch self {
        case .submit(let jobs): (1, Int64(jobs.count))
        case .job(let id): (2, id)
        case .list: (3, 0)
        case .wait(let ids, _): (4, ids.first ?? 0)
        case .jobs(let ids): (21, ids.first ?? 0)
        case .watch(_, let id): (5, id)
        case .cancel(let id): (6, id)
        case .retry(let id, _): (7, id)
        case .remove(let id): (8, id)
        case .result(let id, _, _): (9, id)
        case .queues: (10, 0)
        case .setQueue: (11, 0)
        case .statistics: (12, 0)
        case .setSchedule(let new): (15, Int64(new.key.owner))
        case .schedule(let key): (16, Int64(key.owner))
        case .schedules: (17, 0)
        case .removeSchedule(let key): (18, Int64(key.owner))
        case .runSchedule(let key): (19, Int64(key.owner))
        case .suspendSchedule(let key, let isSuspended): (20, Int64(key.owner) << 1 | (isSuspended ? 1 : 0))
        case .probe: (13, 0)
        case .configure: (14, 0)
        }
    }
}

extension CoreAnswer {
    fileprivate var traced: Int64 {
        switch self {
        case .failed: 0
        case .done: 1
        case .submitted(let jobs):
            jobs.reduce(2) { sum, job in (try? job.get().job).map { sum &* 31 &+ $0 } ?? sum &* 31 }
        case .job(let job): 3 + job.job.id << 4
        case .jobs(let jobs): 4 + Int64(jobs.count) << 4
        case .page(let jobs, _): 5 + Int64(jobs.count) << 4
        case .watching(let jobs, _): 6 + Int64(jobs.count) << 4
        case .result: 7
        case .queues: 8
        case .queue: 9
        case .statistics: 10
        case .schedule(let schedule): 11 + (schedule.next?.milliseconds ?? 0) << 4
        case .schedules(let schedules, _): 12 + Int64(schedules.count) << 4
        case .finished: 13
        case .unfinished: 14
        }
    }
}

extension CoreError {
    fileprivate var traced: Int64 {
        switch code {
        case .notFound: 1
        case .forbidden: 2
        case .busy: 3
        case .wrongState: 4
        case .shuttingDown: 5
        case .keyConflict: 6
        case .timeout: 7
        case .storage: 8
        case .invalid: 9
        }
    }
}

extension StoreWrite {
    fileprivate var traced: (Int64, Int64) {
        switch self {
        case .submit(let jobs): (1, Int64(jobs.count))
        case .children(let new): (2, new.parent.id)
        case .save(let jobs):
            (
                3,
                jobs.reduce(0) {
                    $0 &* 31 &+ $1.id << 12 | Int64($1.state.number) << 8 | Int64($1.link) << 4 | Int64($1.attempt)
                }
            )
        case .remove(let id): (4, id)
        case .removeChildren(let id, let link): (5, id << 8 | Int64(link))
        case .purge(let time, _, _): (6, time.milliseconds)
        case .purgeOldest(let count, _, let owner): (7, Int64(count) << 32 | Int64(owner))
        case .queue(let settings): (8, Int64(settings.concurrency))
        case .probe: (9, 0)
        case .setSchedule(let row, _): (10, row.setAt.milliseconds)
        case .advance(let row, let job): (job == nil ? 11 : 12, row.doneUntil.milliseconds)
        case .removeSchedule(let key): (13, Int64(key.owner))
        }
    }
}

extension StoreRead {
    fileprivate var traced: Int64 {
        switch self {
        case .recovery: 1
        case .jobs(let ids, _): 2 + (ids.first ?? 0) << 4
        case .firstJobs(let ids, _): 11 + (ids.first ?? 0) << 4
        case .states(let ids, _): 15 + (ids.first ?? 0) << 4
        case .list: 3
        case .children(let id, _, _, _): 4 + id << 4
        case .childStates(let id, _): 5 + id << 4
        case .gated(let id, _, _, _): 6 + id << 4
        case .ready(_, let owner, _, _, _): 7 + Int64(owner) << 4
        case .due: 8
        case .overdue: 9
        case .times: 10
        case .schedule(let key): 13 + Int64(key.owner) << 4
        case .schedules: 14
        case .orphans: 11
        case .result(let id, _, _): 12 + id << 4
        }
    }
}

extension StoreRows {
    fileprivate var tracedCount: Int64 {
        switch self {
        case .recovery(let state): Int64(state.running.count)
        case .jobs(let jobs): Int64(jobs.count)
        case .childStates(let states): Int64(states.count)
        case .states(let states): Int64(states.count)
        case .ready(let jobs): Int64(jobs.count)
        case .result(let part): Int64(part?.size ?? 0)
        case .times: 0
        case .schedules(let rows): Int64(rows.count)
        }
    }
}
