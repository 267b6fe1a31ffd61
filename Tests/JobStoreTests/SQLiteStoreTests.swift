import Dispatch
import JobModel
import TestSupport
import Testing

@testable import JobStore

@Suite struct SQLiteStoreTests {
    let directory: TemporaryDirectory
    let store: SQLiteStore

    init() throws {
        directory = try TemporaryDirectory()
        store = try SQLiteStore(path: directory.path)
    }

    // MARK: Submitting

    @Test func submit_numbersJobsInOrder_whenTheyAreNew() async throws {
        let first = try await store.create(.example(), .example())
        let second = try await store.create(.example())
        #expect(first + second == [1, 2, 3])
    }

    @Test func job_isAsItWasSubmitted() async throws {
        let job = try Job.example(
            #""tags": ["a", "b"], "label": "ä\u0000\"", "delay": 60, "deadline": 600, "priority": -7, "key": "k""#)
        let id = try await store.create(job)[0]
        #expect(try await store.job(id) == job.numbered(id))
    }

    @Test func job_isAsItWasSubmitted_whenItsSpecIsLarge() async throws {
        let text = String(repeating: "long ", count: 20_000)
        let job = try Job.example(source: #"{"type": "value", "value": "\#(text)"}"#)
        let id = try await store.create(job)[0]
        #expect(try await store.job(id) == job.numbered(id))
    }

    @Test func jobs_areInTheOrderOfTheirNumbersAsAsked() async throws {
        let ids = try await store.create(.example(), .example(), .example())
        #expect(try await store.jobs(.jobs([ids[2], 99, ids[0]])).map(\.id) == [ids[2], ids[0]])
    }

    @Test func job_isNil_whenThereIsNone() async throws {
        #expect(try await store.job(7) == nil)
    }

    @Test func submit_joins_whenKeyAndSpecAreThoseOfAnEarlierJob() async throws {
        let first = try Job.example(#""key": "k", "label": "l""#)
        let same = try Job.example(#""label": "l", "key": "k""#, at: .after(9))
        let id = try await store.create(first)[0]
        #expect(try await store.submit([same]) == [.joined(id, .queued)])
        try await store.save(first.numbered(id).finished(at: .after(1)))
        #expect(try await store.submit([same]) == [.joined(id, .succeeded)])
    }

    /// Long ones are compared by what was made of them before.
    @Test func longSpec_joins_whateverTheOrderOfItsMembers_andConflictsWhereOneDiffers() async throws {
        func spec(_ numbers: some Sequence<Int>, last: String = "\u{E9}") -> String {
            let members = numbers.map { #""m\#($0)": {"a": \#($0), "b": "\#(last)"}"# }.joined(separator: ", ")
            return #""key": "k", "then": [{"then": {"return": {\#(members)}}}]"#
        }
        let id = try await store.create(.example(spec(0..<500)))[0]
        for _ in 0..<2 {
            #expect(try await store.submit([.example(spec((0..<500).reversed()))]) == [.joined(id, .queued)])
            #expect(try await store.submit([.example(spec(0..<500, last: "y"))]) == [.conflict(id)])
            #expect(try await store.submit([.example(spec(0..<500))]) == [.joined(id, .queued)])
            #expect(try await store.submit([.example(spec(0..<499))]) == [.conflict(id)])
            // The same to whoever does not look at the bytes, and a short one.
            #expect(try await store.submit([.example(spec(0..<500, last: "e\u{301}"))]) == [.conflict(id)])
            #expect(try await store.submit([.example(#""key": "k""#)]) == [.conflict(id)])
        }
    }

    @Test func submit_conflicts_whenTheKeyBelongsToAnotherSpec() async throws {
        let id = try await store.create(.example(#""key": "k""#))[0]
        #expect(try await store.submit([.example(#""key": "k", "label": "l""#)]) == [.conflict(id)])
        #expect(try await store.job(id + 1) == nil)
    }

    @Test(arguments: [1, 7, 8, 31, 32, 33, 41, 100])
    func submit_storesEveryJobWhole_howeverManyComeTogether(count: Int) async throws {
        let long = String(repeating: "long ", count: 400)
        let jobs = try (0..<count).map { number in
            switch number % 5 {
            case 0: try Job.example(#""key": "\#(number)", "tags": ["a", "n\#(number)"]"#)
            case 1: try Job.example(source: #"{"type": "value", "value": "\#(long)\#(number)"}"#)
            case 2: try Job.example(#""delay": 60, "deadline": 600, "priority": \#(number)"#, owner: 7)
            // A spec with nothing but what must be there, so that a value left from another row would show.
            case 3: try Job.example()
            default: try Job.example(#""label": "\#(number)""#).finished(at: .after(number))
            }
        }
        let ids = try await store.submit(jobs)
        #expect(ids == (1...count).map { .created(JobID($0)) })
        let stored = try await store.jobs(.jobs((1...count).map { JobID($0) }))
        #expect(stored == jobs.enumerated().map { $1.numbered(JobID($0 + 1)) })
        var filter = JobFilter()
        filter.tag = "a"
        filter.limit = 1000
        #expect(try await store.jobs(filter).count == (count + 4) / 5)
    }

    @Test func submit_comparesKeys_whereverTheyStandAmongOthers() async throws {
        let earlier = try await store.create(.example(#""key": "old""#))[0]
        let answers = try await store.submit([
            .example(), .example(#""key": "new""#), .example(#""key": "old""#), .example(),
            .example(#""key": "new", "label": "x""#), .example(#""key": "new""#), .example(#""key": "last""#),
        ])
        #expect(
            answers == [
                .created(2), .created(3), .joined(earlier, .queued), .created(4), .conflict(3), .joined(3, .queued),
                .created(5),
            ])
    }

    @Test func submit_createsAnother_whenTheKeyIsOfAnotherOwner() async throws {
        let submissions = try await store.submit([
            .example(#""key": "k""#, owner: 1), .example(#""key": "k""#, owner: 2),
        ])
        #expect(submissions == [.created(1), .created(2)])
    }

    @Test func submit_seesKeysOfItsOwnCallAndGroup() async throws {
        let keyed = try Job.example(#""key": "k""#)
        let other = try Job.example(#""key": "k", "label": "l""#)
        async let one = store.submit([keyed, keyed, other])
        async let two = store.submit([keyed])
        let all = try await (one, two)
        let id = try await store.existing(1).id
        #expect(all.0.contains(.conflict(id)))
        #expect(all.0.contains(.joined(id, .queued)))
        #expect((all.0 + all.1).count { $0 == .created(id) } == 1)
    }

    @Test func submit_freesTheKey_whenItsJobWasRemoved() async throws {
        let job = try Job.example(#""key": "k""#)
        let id = try await store.create(job)[0]
        _ = try await store.remove(id)
        #expect(try await store.submit([job]) == [.created(id + 1)])
    }

    // MARK: Saving

    @Test func save_keepsWhatHappenedToAJob() async throws {
        var job = try Job.example(
            #""retry": {"max": 1}, "deadline": 60, "then": [{"fail": {"source": {"type": "timer", "seconds": 1}}}]"#,
            source: #"{"type": "url", "url": "http://localhost/"}"#)
        job.id = try await store.create(job)[0]
        var failure = JobError(.http, "No.", retryable: true, http: .init(status: 503, reason: "Busy"))
        failure.cause = JobError(.dns, "None.")
        for event in [
            Job.Event.start, .finished(.failure(failure), random: 0.5), .due, .start,
            .finished(.failure(failure), random: 0), .stop(.cancelled),
        ] {
            _ = try job.handle(event, at: .after(3))
            job.host = job.host == nil ? "localhost:80" : nil
            job.children += 1
            try await store.save(job)
            #expect(try await store.job(job.id) == job)
        }
    }

    @Test func save_leavesARemovedJobRemoved() async throws {
        let job = try Job.example()
        let id = try await store.create(job)[0]
        _ = try await store.remove(id)
        try await store.save(job.numbered(id).finished(at: .after(1)))
        #expect(try await store.job(id) == nil)
    }

    @Test func save_dropsTheNote_ofALinkThatSucceeded() async throws {
        let job = try Job.example()
        let ids = try await store.create(job, job, job, job)
        for id in ids { try await store.save(checkpoint: "here", of: id, link: 0) }
        try await store.save(job.numbered(ids[0]).finished(at: .after(1)))
        var cancelled = job.numbered(ids[1])
        _ = try cancelled.handle(.stop(.cancelled), at: .after(1))
        try await store.save(cancelled)
        // A failed one can be retried, and goes on with what it has; of a cancelled one it tells what is still to be removed.
        try await store.save(job.numbered(ids[2]).finished(.failure(JobError(.dns, "No.")), at: .after(1)))
        let checkpoints = [nil, "here", "here", "here"] as [JSON?]
        for (id, checkpoint) in zip(ids, checkpoints) {
            #expect(try await store.checkpoint(of: id, link: 0) == checkpoint)
        }
    }

    // MARK: Reading in turn

    /// One user's reads wait for each other, and the others' do not wait for them.
    @Test func readers_areShared_byUsers() async throws {
        let release = DispatchSemaphore(value: 0)
        let done = DispatchGroup()
        for _ in 0..<10 {
            done.enter()
            store.read(for: 1000, { _ in release.wait() }) { (_: Result<Void, StoreError>) in done.leave() }
        }
        // It would wait for ever.
        for owner in [1001, nil] as [UInt32?] {
            await withCheckedContinuation { continuation in
                store.read(for: owner, { _ in }) { (_: Result<Void, StoreError>) in continuation.resume() }
            }
        }
        for _ in 0..<10 { release.signal() }
        await withCheckedContinuation { continuation in done.notify(queue: .global()) { continuation.resume() } }
    }

    // MARK: Notes, downloads, queues

    @Test func note_isTheLatest_untilItIsDropped() async throws {
        let id = try await store.create(.example())[0]
        try await store.save(checkpoint: ["a": 1], of: id, link: 2)
        try await store.save(checkpoint: ["a": 2], of: id, link: 2)
        #expect(try await store.checkpoint(of: id, link: 2) == ["a": 2])
        #expect(try await store.checkpoint(of: id, link: 1) == nil)
        try await store.save(checkpoint: nil, of: id, link: 2)
        #expect(try await store.checkpoint(of: id, link: 2) == nil)
    }

    @Test func note_isNotKept_whenTheJobSucceededOrWasRemoved() async throws {
        let job = try Job.example()
        let ids = try await store.create(job, job)
        try await store.save(job.numbered(ids[0]).finished(at: .after(1)))
        _ = try await store.remove(ids[1])
        for id in ids {
            try await store.save(checkpoint: "late", of: id, link: 0)
            #expect(try await store.checkpoint(of: id, link: 0) == nil)
        }
    }

    @Test func download_isTheLatestToItsPath() async throws {
        try await store.save(download: ["etag": "1"], to: "/a")
        try await store.save(download: ["etag": "2"], to: "/b")
        try await store.save(download: ["etag": "3"], to: "/a")
        #expect(try await store.download(to: "/a") == ["etag": "3"])
        #expect(try await store.download(to: "/b") == ["etag": "2"])
        #expect(try await store.download(to: "/c") == nil)
    }

    @Test func downloads_areTheLatest100000() async throws {
        await store.close()
        try DatabaseFile(directory.database).execute(
            """
            WITH RECURSIVE numbers (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < 100000)
            INSERT INTO downloads (path, record) SELECT '/' || n, n FROM numbers
            """)
        let store = try SQLiteStore(path: directory.path)
        try await store.save(download: "again", to: "/1")
        #expect(try await store.download(to: "/2") == 2)
        try await store.save(download: "new", to: "/new")
        #expect(try await store.download(to: "/2") == nil)
        #expect(try await store.download(to: "/1") == "again")
        #expect(try await store.download(to: "/3") == 3)
        await store.close()
    }

    @Test func queues_areAsTheyWereSet() async throws {
        try await store.save(QueueSettings(name: "b", concurrency: 3))
        try await store.save(QueueSettings(name: "a", concurrency: 1, isSuspended: true))
        try await store.save(QueueSettings(name: "b", concurrency: 4))
        #expect(
            try await store.recovery().queues == [
                QueueSettings(name: "a", concurrency: 1, isSuspended: true), QueueSettings(name: "b", concurrency: 4),
            ])
    }

    // MARK: Closing

    @Test func store_holdsAllThatWasAnswered_whenItIsOpenedAgain() async throws {
        let job = try Job.example(#""key": "k""#)
        let ids = try await store.create(job, .example())
        let finished = try job.numbered(ids[0]).finished(at: .after(1))
        try await store.save(finished)
        await store.close()
        let again = try SQLiteStore(path: directory.path)
        #expect(try await again.job(ids[0]) == finished)
        #expect(try await again.submit([job]) == [.joined(ids[0], .succeeded)])
        #expect(try await again.create(.example()) == [ids[1] + 1])
        await again.close()
    }

    @Test func store_givesNoNumberTwice_whenTheLastJobWasRemoved() async throws {
        let last = try await store.create(.example(), .example(), .example())[2]
        _ = try await store.remove(last)
        await store.close()
        let again = try SQLiteStore(path: directory.path)
        #expect(try await again.create(.example()) == [last + 1])
        await again.close()
    }

    @Test func store_refuses_whenItIsClosed() async throws {
        await store.close()
        await #expect(throws: StoreError.self) { try await store.create(.example()) }
        await #expect { _ = try await store.job(1) } throws: { ($0 as? StoreError)?.code == .closed }
        await #expect { try await store.probe() } throws: { ($0 as? StoreError)?.code == .closed }
    }

    @Test func close_letsReadsFinish() async throws {
        _ = try await store.submit((0..<100).map { _ in try .example() })
        let store = store
        await withTaskGroup(of: Void.self) { group in
            for number in 0..<200 {
                group.addTask {
                    if number == 100 { return await store.close() }
                    do {
                        let count = try await store.jobs(JobFilter()).count
                        #expect(count == 100)
                    } catch { #expect((error as? StoreError)?.code == .closed) }
                }
            }
        }
    }

    @Test func read_answers_whenItsTaskWasCancelled() async throws {
        let id = try await store.create(.example())[0]
        let store = store
        let task = Task {
            withUnsafeCurrentTask { $0?.cancel() }
            return try await store.job(id)
        }
        #expect(try await task.value != nil)
    }
}
