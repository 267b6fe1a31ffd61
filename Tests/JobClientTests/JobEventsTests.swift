import FakeDaemon
import JobModel
import JobProtocol
import Testing

@testable import JobClient

/// The line of a notification of progress.
private func progress(job: Int = 1, seq: Int, completed: Int, coalesced: Int = 0) -> String {
    #"{"jsonrpc":"2.0","method":"job.progress","params":{"watch":"w1","job":\#(job),"seq":\#(seq),"link":0,"links":0,"#
        + #""progress":{"completed":\#(completed),"total":null,"unit":"bytes","fraction":null,"rate":null,"#
        + #""eta":null},"coalesced":\#(coalesced)}}"# + "\n"
}

/// The line of a notification of a state.
private func state(job: Int = 1, seq: Int, _ state: String) -> String {
    #"{"jsonrpc":"2.0","method":"job.state","params":{"watch":"w1","job":\#(job),"seq":\#(seq),"state":"\#(state)","#
        + #""snapshot":{"job":\#(job),"state":"\#(state)"}}}"# + "\n"
}

@Suite struct JobEventsTests {
    @Test func notifications_mergeProgress_whenTheReaderIsSlow() async throws {
        let events = try await FakeDaemon.with { daemon in
            guard let call = daemon.call() else { return }
            for number in 1...10_000 { daemon.send(progress(seq: number, completed: number)) }
            daemon.send(state(seq: 10_001, "succeeded"))
            daemon.answer(call, .null)
            daemon.waitForEnd()
        } _: { path in
            try await JobClient.withConnection(path: path) { client in
                // Its answer comes behind the flood, so by then all of that waits.
                _ = try await client.call("barrier")
                var events: [JobEvent] = []
                for try await event in client.notifications {
                    events.append(event)
                    if case .state = event.change { break }
                }
                return events
            }
        }
        #expect(events.map(\.seq) == [10_000, 10_001])
        guard case .progress(let progress, _, _, let coalesced) = events.first?.change else {
            Issue.record("The first event is no progress.")
            return
        }
        #expect(progress.completed == 10_000)
        #expect(coalesced == 9_999)
    }

    @Test func event_writesTheNotificationThatItWasReadFrom() throws {
        for line in [progress(seq: 3, completed: 5, coalesced: 2), state(seq: 4, "failed")] {
            #expect(try event(line).json == JSON(parsing: line))
        }
    }

    @Test func notifications_throwMisuse_whenTwoTasksRead() async throws {
        let events = JobEvents(limit: 1000)
        try await withThrowingTaskGroup(of: Void.self) { group in
            for _ in 1...2 { group.addTask { _ = try await events.makeAsyncIterator().next() } }
            // Whichever came second is refused at once; only then does the other get the end.
            let refused = await group.nextResult()
            events.end(nil)
            guard case .failure(let error as JobClientError) = refused else {
                Issue.record("Both tasks read.")
                return
            }
            #expect(error.code == .misuse)
            try await group.waitForAll()
        }
    }

    @Test func notifications_end_whenTheReadersTaskIsCancelled() async throws {
        let events = JobEvents(limit: 1000)
        let reader = Task { try await events.makeAsyncIterator().next() }
        reader.cancel()
        #expect(try await reader.value == nil)
    }
}

/// The event of a line.
private func event(_ line: String, size: Int = 10) throws -> JobEvent {
    let json = try JSON(parsing: line)
    let method = try #require(JobNotification.Method(rawValue: json["method"]?.string ?? ""))
    return try #require(JobEvent(method, json["params"]?.object ?? [:], size: size))
}

@Suite struct EventQueueTests {
    @Test func append_refuses_whenTheBoundIsReached() throws {
        var queue = EventQueue(limit: 25)
        #expect(queue.append(try event(state(seq: 1, "queued"))))
        #expect(queue.append(try event(progress(seq: 2, completed: 1))))
        #expect(!queue.append(try event(state(seq: 3, "running"))))
        // Progress takes the place of progress, so it always fits.
        #expect(queue.append(try event(progress(seq: 4, completed: 2))))
        _ = queue.next()
        #expect(queue.append(try event(state(seq: 5, "running"))))
    }

    @Test func append_mergesProgressOfAJob_butNotAcrossAStateOrAReading() throws {
        var queue = EventQueue(limit: 1000)
        func append(_ lines: String...) throws {
            for line in lines { #expect(queue.append(try event(line))) }
        }
        var seqs: [Int] = []
        func take() {
            guard case .success(let event?) = queue.next() else { return }
            seqs.append(event.seq)
        }
        try append(progress(seq: 1, completed: 1), progress(seq: 2, completed: 2))
        take()
        try append(
            progress(seq: 3, completed: 3), state(seq: 4, "scheduled"), progress(job: 2, seq: 5, completed: 1),
            progress(seq: 6, completed: 4), progress(job: 2, seq: 7, completed: 2), state(seq: 8, "failed"))
        for _ in 1...6 { take() }
        #expect(seqs == [2, 3, 4, 7, 6, 8])
    }

    @Test func next_handsOutWhatWaits_beforeTheEnd() throws {
        var queue = EventQueue(limit: 1000)
        #expect(queue.append(try event(state(seq: 1, "queued"))))
        queue.end(JobClientError(.slowReader, "Too slow."))
        #expect(queue.append(try event(state(seq: 2, "running"))))
        guard case .success(let first?) = queue.next(), case .failure(let error) = queue.next(),
            case .success(nil) = queue.next()
        else {
            Issue.record("The queue did not end with its event, its error and its end.")
            return
        }
        #expect(first.seq == 1)
        #expect(error.code == .slowReader)
    }
}
