import FakeDaemon
import JobModel
import Testing

@testable import JobClient

/// Runs `body` with a connection to a fake daemon that does `serve`.
private func withClient<Value>(
    _ serve: @escaping @Sendable (FakeConnection) -> Void, _ body: (JobClient) async throws -> Value
) async throws -> Value {
    try await FakeDaemon.with(serve) { path in
        try await JobClient.withConnection(path: path) { try await body($0) }
    }
}

/// The error that `body` throws, or nil where it throws none.
private func failure(_ body: () async throws -> Void) async -> JobClientError? {
    do {
        try await body()
        return nil
    } catch {
        return error as? JobClientError
    }
}

@Suite struct JobClientCallTests {
    @Test func connect_namesTheBound_whenThePathIsTooLong() async {
        let error = await #expect(throws: JobClientError.self) {
            _ = try await JobClient.connect(path: "/" + String(repeating: "x", count: 107))
        }
        #expect(error?.code == .unreachable && error?.message.contains("at most 107") == true)
    }

    @Test func call_returnsItsOwnResult_whenAnswersComeOutOfOrder() async throws {
        let results = try await withClient { daemon in
            for call in daemon.calls(3).reversed() { daemon.answer(call, call["params"] ?? .null) }
            daemon.waitForEnd()
        } _: { client in
            async let first = client.call("a", ["n": 1])
            async let second = client.call("b", ["n": 2])
            async let third = client.call("c", ["n": 3])
            return try await [first, second, third]
        }
        #expect(results == [["n": 1], ["n": 2], ["n": 3]])
    }

    @Test func call_throwsWhatTheDaemonSaid_whenItRefuses() async throws {
        let error = try await withClient { daemon in
            let id = daemon.call()?["id"] ?? .null
            daemon.send(
                #"{"jsonrpc":"2.0","id":\#(id),"error":{"code":-32003,"message":"Busy.","#
                    + #""data":{"kind":"busy","retryAfter":2}}}"# + "\n")
            daemon.waitForEnd()
        } _: { client in
            await failure { _ = try await client.call("a") }
        }
        #expect(error?.code == .rpc)
        #expect(error?.rpc?.code == -32003)
        #expect(error?.rpc?.kind == "busy")
        #expect(error?.rpc?.data["retryAfter"] == 2)
        #expect(error?.message == "Busy.")
    }

    @Test func calls_throwClosed_whenTheDaemonGoesAway() async throws {
        try await withClient { daemon in
            _ = daemon.calls(2)
        } _: { client in
            async let first = failure { _ = try await client.call("a") }
            async let second = failure { _ = try await client.call("b") }
            #expect(await first?.code == .closed)
            #expect(await second?.code == .closed)
            let later = await failure { _ = try await client.call("c") }
            #expect(later?.code == .closed)
            let reading = await failure { for try await _ in client.notifications {} }
            #expect(reading?.code == .closed)
        }
    }

    @Test(arguments: [
        "no json", "[]", "17", #"{"jsonrpc":"2.0","id":99,"result":1}"#, #"{"jsonrpc":"2.0","id":"x","result":1}"#,
        #"{"jsonrpc":"2.0","id":1}"#, #"{"jsonrpc":"2.0","id":1,"error":"text"}"#,
        #"{"jsonrpc":"2.0","id":null,"result":1}"#, "\u{0}\u{1}\u{2}",
        #"[{"jsonrpc":"2.0","id":1,"result":1}]"#,
        #"{"jsonrpc":"2.0","method":"job.state","params":{"watch":"w1","job":1,"seq":1,"state":"queued"}}"#,
        #"{"jsonrpc":"2.0","method":"job.progress","params":{}}"#,
    ])
    func call_throwsProtocolViolation_whenTheAnswerMakesNoSense(answer: String) async throws {
        try await withClient { daemon in
            _ = daemon.call()
            daemon.send(answer + "\n")
            // The client hangs up by itself.
            daemon.waitForEnd()
        } _: { client in
            let error = await failure { _ = try await client.call("a") }
            #expect(error?.code == .protocolViolation, "\(answer)")
            let later = await failure { _ = try await client.call("b") }
            #expect(later?.code == .protocolViolation)
        }
    }

    @Test func call_returnsResult_whenAnUnknownNotificationCameBefore() async throws {
        let result = try await withClient { daemon in
            guard let call = daemon.call() else { return }
            daemon.send(#"{"jsonrpc":"2.0","method":"job.dance","params":{}}"# + "\n\n")
            daemon.answer(call, 1)
            daemon.waitForEnd()
        } _: { client in
            try await client.call("a")
        }
        #expect(result == 1)
    }

    @Test func call_failsAndOthersGoOn_whenItsLineIsTooLong() async throws {
        try await withClient { daemon in
            let calls = daemon.calls(2)
            daemon.send(
                #"{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"Too long.","#
                    + #""data":{"kind":"line-too-long"}}}"# + "\n")
            for call in calls where call["method"] == "short" { daemon.answer(call, 1) }
            daemon.waitForEnd()
        } _: { client in
            async let long = failure { _ = try await client.call("long", ["x": "xxxxxxxxxxxxxxxxxxxxxxxx"]) }
            async let short = client.call("short")
            #expect(await long?.rpc?.kind == "line-too-long")
            let result = try await short
            #expect(result == 1)
        }
    }

    @Test func call_throwsTheDaemonsReason_whenTheConnectionIsOneTooMany() async throws {
        try await withClient { daemon in
            daemon.send(
                #"{"jsonrpc":"2.0","id":null,"error":{"code":-32003,"message":"Full.","data":{"kind":"busy"}}}"#
                    + "\n")
            daemon.waitForEnd()
        } _: { client in
            let error = await failure { _ = try await client.call("a") }
            #expect(error?.rpc?.kind == "busy")
        }
    }

    @Test func call_throwsCancelled_whenItsTaskIsCancelled() async throws {
        let (arrivals, arrival) = AsyncStream.makeStream(of: Void.self)
        try await withClient { daemon in
            let waiting = daemon.call()
            arrival.finish()
            let other = daemon.call()
            // The late answer comes first, and no call waits for it.
            if let waiting { daemon.answer(waiting, 1) }
            if let other { daemon.answer(other, 2) }
            daemon.waitForEnd()
        } _: { client in
            let waiting = Task { await failure { _ = try await client.call("job.wait") } }
            for await _ in arrivals {}
            waiting.cancel()
            #expect(await waiting.value?.code == .cancelled)
            let result = try await client.call("b")
            #expect(result == 2)
        }
    }

    @Test func call_throwsCancelled_whenItsTaskWasCancelledBefore() async throws {
        try await withClient { daemon in
            daemon.waitForEnd()
        } _: { client in
            let error = await withTaskGroup(of: JobClientError?.self) { group in
                group.cancelAll()
                group.addTask { await failure { _ = try await client.call("a") } }
                return await group.next() ?? nil
            }
            #expect(error?.code == .cancelled)
        }
    }

    @Test func close_failsWaitingCallsAndEndsNotifications() async throws {
        try await withClient { daemon in
            daemon.waitForEnd()
        } _: { client in
            async let call = failure { _ = try await client.call("a") }
            async let events = client.notifications.reduce(0) { count, _ in count + 1 }
            await client.close()
            #expect(await call?.code == .closed)
            let count = try await events
            #expect(count == 0)
        }
    }

    @Test(arguments: ["/nonexistent/socket", "/tmp", "/etc/passwd", String(repeating: "x", count: 200)])
    func connect_throwsUnreachable_whenNobodyListens(path: String) async {
        let error = await failure { _ = try await JobClient.connect(path: path) }
        #expect(error?.code == .unreachable)
        #expect(error?.message.contains(path) == true)
    }
}
