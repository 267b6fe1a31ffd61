import JobModel
import TestSupport
import Testing

/// What stands beside the jobs: lists, checkpoints, schedules, queues, counts and work.
@Suite struct RecordTests {
    @Test(arguments: StoreKind.allCases) func keepsListsAndTheirTemplates(_ kind: StoreKind) throws {
        let store = try kind.make()
        let id = try #require(try store.insert([.sample()]).first)
        var row = list(of: id, id: 3, template: .inline(Array("{\"url\":\"{{ item }}\"}".utf8)))
        try store.round { transaction throws in
            #expect(try transaction.list(of: id) == nil)
            try transaction.put(row)
            #expect(try transaction.list(of: id) == row)
        }
        try store.round { transaction throws in
            #expect(try transaction.list(of: id) == row)
            (row.made, row.ended, row.failed, row.admitted, row.bytes) = (4, 3, 2, 1, 1 << 40)
            (row.phase, row.decided) = (.gathering, 2)
            try transaction.put(row)
        }
        try store.round { transaction throws in
            #expect(try transaction.list(of: id) == row)
            try transaction.closeList(of: id)
            #expect(try transaction.list(of: id) == nil)
            try transaction.put(list(of: id, id: 4, link: 1))
            try transaction.dropTemplates(of: id, fromLink: 0)
            #expect(try transaction.list(of: id)?.id == 4)
            try transaction.closeList(of: id)
        }
        try store.round { transaction throws in #expect(try transaction.list(of: id) == nil) }
    }

    @Test(arguments: StoreKind.allCases) func keepsCheckpointsUntilTheirJobGoes(_ kind: StoreKind) throws {
        let store = try kind.make()
        let id = try #require(try store.insert([.sample()]).first)
        try store.round { transaction throws in
            for link in [2, 0, 1] { try transaction.save(checkpoint: [UInt8(link)], of: id, link: link) }
            try transaction.save(checkpoint: [7], of: id, link: 1)
            try transaction.save(checkpoint: nil, of: id, link: 2)
            try transaction.save(download: [1], to: "/a")
            try transaction.save(download: [2], to: "/a")
        }
        try store.round { transaction throws in
            #expect(try transaction.checkpoints(of: id, fromLink: 0).map(\.link) == [0, 1])
            #expect(try transaction.checkpoints(of: id, fromLink: 1).map(\.text) == [[7]])
            try transaction.delete(id)
            #expect(try transaction.checkpoints(of: id, fromLink: 0).isEmpty)
        }
    }

    @Test(arguments: StoreKind.allCases) func doesNotKeepADownload_toALongPath(_ kind: StoreKind) throws {
        let store = try kind.make()
        var generator = SeededGenerator(seed: 1)
        // It cannot be compressed.
        let name = (0..<3000).map { _ in UInt8.random(in: 48...122, using: &generator) }
        let path = "/" + String(decoding: name, as: UTF8.self)
        try store.round { transaction throws in
            try transaction.save(download: [1], to: path)
            try transaction.save(download: [2], to: "/a")
        }
        guard let reader = store.reader else { return }
        #expect(try reader.download(to: path) == nil)
        #expect(try reader.download(to: "/a") == [2])
    }

    @Test(arguments: StoreKind.allCases) func keepsDocuments(_ kind: StoreKind) throws {
        let store = try kind.make()
        let documents: [NewJobRow.Document] = [
            .spec([]), .spec(Array(repeating: 32, count: 200_000)), .item(.inline(Array("\"x\"".utf8))),
            .item(.file(BlobReference(life: 1, number: 2, size: 3))),
        ]
        try store.round { transaction throws in
            _ = try transaction.insert(documents.map { NewJobRow(row: .sample(), document: $0) })
        }
        try store.round { transaction throws in
            for (index, document) in documents.enumerated() {
                #expect(try transaction.document(of: JobID(index + 1)) == document)
            }
            #expect(try transaction.document(of: 99) == nil)
        }
    }

    @Test(arguments: StoreKind.allCases) func keepsSchedules(_ kind: StoreKind) throws {
        let store = try kind.make()
        let time = Timestamp(milliseconds: 1_700_000_000_000)
        let calendar = try CalendarExpression("0 4 * * *")
        let timings: [String: ScheduleTiming] = [
            "c": .calendar("0 4 * * *", calendar, zone: "Europe/Berlin"), "b": .every(60_000),
        ]
        func schedule(_ owner: UInt32, _ name: String, next: Timestamp?) -> Schedule {
            var schedule = Schedule(
                key: ScheduleKey(owner: owner, name: name),
                timing: timings[name] ?? .reboot("boot"),
                catchUp: .all, overlap: .queue, isSuspended: true, setAt: time, specSize: 12)
            schedule.groups = CallerGroups([4])
            schedule.lastTime = time
            schedule.lastJob = JobID(owner) * 10
            (schedule.submitted, schedule.skipped) = (3, 4)
            schedule.waiting = [time, time.adding(seconds: 1)]
            schedule.next = next
            return schedule
        }
        var first = schedule(1, "c", next: time)
        let second = schedule(1, "b", next: time.adding(seconds: -5))
        let third = schedule(2, "a", next: nil)
        try store.round { transaction throws in
            for row in [first, second, third] { try transaction.put(row, spec: Array("{}".utf8)) }
            #expect(try transaction.schedule(first.key) == first)
        }
        try store.round { transaction throws in
            #expect(try transaction.schedules(after: nil, limit: 10) == [second, first, third])
            #expect(try transaction.schedules(after: second.key, limit: 1) == [first])
            #expect(try transaction.dueSchedules(at: time, limit: 10) == [second, first])
            #expect(try transaction.dueSchedules(at: time, limit: 1) == [second])
            #expect(try transaction.dueSchedules(at: time.adding(seconds: -1), limit: 10) == [second])
            #expect(try transaction.dueTimes().schedules == second.next)
            #expect(try transaction.schedule(ofLastJob: 20) == third)
            #expect(try transaction.schedule(ofLastJob: 21) == nil)
            let size = first.storedSize + second.storedSize
            #expect(
                try transaction.scheduleCounts() == [
                    1: CountValue(jobs: 2, bytes: size), 2: CountValue(jobs: 1, bytes: third.storedSize),
                ])
            (first.next, first.version) = (nil, 2)
            try transaction.put(first, spec: nil)
            #expect(try transaction.schedule(first.key) == first)
            try transaction.removeSchedule(first.key)
            #expect(try transaction.schedule(first.key) == nil)
        }
    }

    @Test(arguments: StoreKind.allCases) func keepsQueuesAndCounts(_ kind: StoreKind) throws {
        let store = try kind.make()
        var (whole, part) = (QueueOverrides(), QueueOverrides())
        (whole.concurrency, whole.perUser, whole.isSuspended) = (3, 2, true)
        (whole.startRate, whole.byteRate) = (StartRate(count: 3, seconds: 0.25), 1 << 40)
        part.isSuspended = false
        let key = CountKey(owner: 5, queue: "a", state: .failed)
        let other = CountKey(owner: 5, queue: "b", state: .queued)
        try store.round { transaction throws in
            for name in ["b", "c", "a"] { try transaction.put(name == "a" ? whole : part, ofQueue: name) }
            try transaction.put(nil, ofQueue: "c")
            #expect(try transaction.queues() == ["a": whole, "b": part])
            try transaction.put([key: CountValue(jobs: 2, bytes: 7), other: CountValue(jobs: 1, bytes: 1)])
            try transaction.put([key: CountValue(jobs: 3, bytes: 8)])
            #expect(try transaction.counts()[key] == CountValue(jobs: 3, bytes: 8))
        }
        try store.round { transaction throws in
            try transaction.put([other: CountValue()])
            #expect(try transaction.counts() == [key: CountValue(jobs: 3, bytes: 8)])
        }
    }

    @Test(arguments: StoreKind.allCases) func keepsWork(_ kind: StoreKind) throws {
        let store = try kind.make()
        let work = [
            WorkRow(kind: .removeParts, job: 1, owner: 3, payload: [1, 2]),
            WorkRow(kind: .cancelChildren, job: 2, owner: 7, list: 4, position: 5),
            WorkRow(kind: .removeTree, job: 3, owner: 5), WorkRow(kind: .removeTree, job: 4, owner: 5),
        ]
        let ids = try store.round { transaction throws in try work.map { try transaction.add($0) } }
        #expect(ids == ids.sorted() && Set(ids).count == 4)
        try store.round { transaction throws in
            let stored = try transaction.work(after: 0, limit: 10)
            #expect(stored.map(\.id) == ids)
            #expect(stored.map(\.kind) == work.map(\.kind))
            #expect(stored[0].payload == [1, 2])
            #expect((stored[1].list, stored[1].position) == (4, 5))
            #expect(try transaction.work(after: ids[0], limit: 2).map(\.id) == Array(ids[1...2]))
            #expect(try transaction.nextWork(ofOwnerAbove: nil)?.id == ids[2])
            #expect(try transaction.nextWork(ofOwnerAbove: 5)?.id == ids[1])
            #expect(try transaction.nextWork(ofOwnerAbove: 7) == nil)
            #expect(try transaction.hasWork(.removeTree, of: 3))
            #expect(try !transaction.hasWork(.removeTree, of: 1))
            var changed = stored[1]
            changed.position = 9
            try transaction.update(changed)
            try transaction.endWork(ids[2])
            #expect(try transaction.work(after: 0, limit: 10).map(\.position) == [0, 9, 0])
            #expect(try !transaction.hasWork(.removeTree, of: 3))
        }
        let later = try store.round { try $0.add(work[0]) }
        #expect(later > ids[3])
    }
}
