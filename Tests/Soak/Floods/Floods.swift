import Foundation
import Glibc
import JobClient
import JobModel

/// How long a user's small calls take with and without another user's flood.
///
/// `soak floods [SECONDS [NAME]]` prints a row for each kind of flood. It fails if the median of a call takes more than
/// three times as long as without the flood, plus 20 ms, twice in a row, or if the daemon used more than 250 MB of
/// memory. In the last row, `everything`, one user sends all requests at once, with connections and watches that are
/// never read and endless lines.
///
/// The figures are valid on an idle machine only: the flood itself uses processors too.
struct Floods {
    /// More may be stored than a flood can submit: refused calls are not a flood. Of 10,000 connections, half are
    /// admitted.
    static let configuration = """
        socket: {mode: "0666"}
        limits: {storedPerUser: 1099511627776, connections: 9000, connectionsPerUser: \(HostileClients.admitted)}

        """

    private enum Kind {
        /// A request, how many connections send it, and how many each has under way.
        case request(String, connections: Int, ahead: Int)
        case schedules
        case clients(HostileClients.Kind)
        case everything
    }

    private struct Row {
        let name: String
        let kind: Kind

        init(_ name: String, _ kind: Kind) {
            self.name = name
            self.kind = kind
        }

        init(_ name: String, _ request: String, _ connections: Int, _ ahead: Int) {
            self.init(name, .request(request, connections: connections, ahead: ahead))
        }
    }

    /// The calls of the other user.
    private enum Call: String, CaseIterable {
        case submit = "job.submit"
        case get = "job.get"
        case info = "server.info"
    }

    /// Schedules of a long spec that have a time every second.
    private static let schedules = 100

    /// The most that the daemon may have in memory, in bytes.
    private static let mostMemory = 250_000_000

    /// Milliseconds that a call may take which takes `quiet` without the flood.
    private static func most(_ quiet: Double) -> Double { 3 * quiet + 20 }

    private let sockets: UserSockets
    private let seconds: Double
    /// Only floods of this name, if given.
    private let name: String?
    /// Looks at the daemon.
    private let sample: @Sendable () -> Sample

    init(
        sockets: UserSockets, seconds: Double, only name: String? = nil, sample: @escaping @Sendable () -> Sample
    ) {
        self.sockets = sockets
        self.sample = sample
        self.seconds = seconds
        self.name = name
    }

    /// `finished` are jobs of the flooding user.
    private static func requests(finished: [Int64]) -> [Row] {
        let ids = finished.map(String.init).joined(separator: ",")
        let wait = #"{"jsonrpc":"2.0","id":1,"method":"job.wait","params":{"jobs":[\#(ids)]}}"#
        return [
            Row("list", FloodRequests.list, 8, 4), Row("wait", wait, 8, 4),
            Row("submit", FloodRequests.submission, 50, 100),
            Row("large submit", FloodRequests.largeSubmission, 50, 4),
            Row("long line", FloodRequests.longLine, 4, 2), Row("long spec", FloodRequests.longSpec, 4, 2),
            Row("expansions", FloodRequests.expansions, 4, 1), Row("children", FloodRequests.children, 4, 1),
            Row("long lists", FloodRequests.longLists, 4, 1),
        ]
    }

    /// The floods that made others wait too long.
    func run() async throws -> [String] {
        let (other, noisy) = (try await sockets.client(of: 0), try await sockets.client(of: 1))
        let job = try await submit(other).id
        for _ in 0..<5_000 { _ = try await submit(noisy) }
        var finished: [Int64] = []
        for _ in 0..<1_000 { finished.append(try await noisy.submit(["source": ["type": "value", "value": 1]]).id) }
        let requests = Self.requests(finished: finished)
        let rows =
            requests + [Row("schedules", .schedules)]
            + HostileClients.Kind.allCases.map { Row($0.rawValue, .clients($0)) } + [Row("everything", .everything)]
        guard name == nil || rows.contains(where: { $0.name == name }) else {
            throw SoakError("No flood has that name; there are: \(rows.map(\.name).joined(separator: ", "))")
        }
        print("flood        " + Call.allCases.map { "\($0.rawValue), ms".padded(28) }.joined())
        var tooLong: [String] = []
        for row in rows where name == nil || name == row.name {
            // The machine has moods; a defect is there again.
            for isAgain in [false, true] {
                let (quiet, flooded) = try await compare(row, requests, other: other, job, noisy: noisy)
                let medians = Call.allCases.map { call in
                    (call, Self.median(quiet[call] ?? []), Self.median(flooded[call] ?? []))
                }
                print(
                    row.name.padded(13)
                        + medians.map { String(format: "%.2f, flooded %.2f", $1, $2).padded(28) }.joined())
                fflush(nil)
                let late = medians.filter { !($2 <= Self.most($1)) }.map { "\(row.name): \($0.0.rawValue)" }
                if late.isEmpty { break }
                if isAgain { tooLong += late }
            }
            let peak = await sockets.asStarter(sample).peak
            print("             the daemon had \(peak / 1_000_000) MB in memory at its peak so far")
            if peak > Self.mostMemory { tooLong.append("\(row.name): \(peak / 1_000_000) MB in memory") }
        }
        await other.close()
        await noisy.close()
        return tooLong
    }

    // MARK: Measuring

    /// Milliseconds that some calls of each kind take, without and with the flood.
    private func compare(
        _ row: Row, _ requests: [Row], other: JobClient, _ job: Int64, noisy: JobClient
    ) async throws -> (quiet: [Call: [Double]], flooded: [Call: [Double]]) {
        var (quiet, flooded): ([Call: [Double]], [Call: [Double]]) = ([:], [:])
        // In turns, as the machine has moods.
        for _ in 0..<2 {
            try await measure(other, job, into: &quiet)
            let end = try await start(row, requests, noisy)
            try await measure(other, job, into: &flooded)
            let told = try await end()
            try await wait(noisy) { $0["connections"] == 1 }
            try await cancelAll(noisy)
            try await wait(noisy) { $0["jobs"]?["queued"] == 0 }
            if let told { print("             \(told)") }
        }
        return (quiet, flooded)
    }

    private func measure(_ client: JobClient, _ job: Int64, into latencies: inout [Call: [Double]]) async throws {
        let end = ContinuousClock.now + .seconds(seconds / 4)
        while ContinuousClock.now < end {
            for call in Call.allCases {
                let start = ContinuousClock.now
                switch call {
                case .submit: _ = try await submit(client)
                case .get: _ = try await client.get(job)
                case .info: _ = try await client.info()
                }
                latencies[call, default: []].append(start.duration(to: .now) / .milliseconds(1))
                try await Task.sleep(for: .milliseconds(3))
            }
        }
    }

    private static func median(_ values: [Double]) -> Double {
        values.isEmpty ? .nan : values.sorted()[values.count / 2]
    }

    private func submit(_ client: JobClient) async throws -> JobClient.Submission {
        try await client.submit(["source": ["type": "value", "value": 1], "delay": 86_400])
    }

    // MARK: Flooding

    /// Starts the flood; the returned closure ends it, and may return its results.
    private func start(
        _ row: Row, _ requests: [Row], _ noisy: JobClient
    ) async throws -> () async throws -> String? {
        switch row.kind {
        case .request(let request, let connections, let ahead):
            let flood = try await flood(request, connections, ahead)
            return {
                flood.stop()
                return nil
            }
        case .schedules:
            try await setSchedules(noisy)
            return {
                try await removeSchedules(noisy)
                return nil
            }
        case .clients(let kind):
            let clients = try await HostileClients(kind, sockets: sockets)
            return { try clients.stop() }
        case .everything:
            try await setSchedules(noisy)
            var floods: [RequestFlood] = []
            for row in requests {
                guard case .request(let request, let connections, let ahead) = row.kind else { continue }
                floods.append(try await flood(request, connections, ahead, amongOthers: true))
            }
            let ignored = try await ignoreAnswers()
            return { [floods] in
                for descriptor in ignored { close(descriptor) }
                for flood in floods { flood.stop() }
                try await wait(noisy) { $0["connections"] == 1 }
                try await removeSchedules(noisy)
                return nil
            }
        }
    }

    private func flood(
        _ request: String, _ connections: Int, _ ahead: Int, amongOthers: Bool = false
    ) async throws -> RequestFlood {
        var descriptors: [Int32] = []
        for _ in 0..<connections { descriptors.append(try await sockets.descriptor(of: 1)) }
        // A flood that is refused at once would not be the flood of its row.
        if request != FloodRequests.longLine, !amongOthers, let first = descriptors.first {
            let answer = Self.answer(to: request, over: first)
            guard answer.contains(#""result""#) else {
                throw SoakError("What is to be flooded with was refused: \(answer)")
            }
        }
        return RequestFlood(descriptors, Array((request + "\n").utf8), ahead: ahead)
    }

    /// The jobs are rejected after the whole spec was checked, so that jobs do not affect the measurement.
    private func setSchedules(_ client: JobClient) async throws {
        let last = #"{"source":{"type":"url","url":"{{schedule/name}}"}}"#
        let spec = try JSON(parsing: FloodRequests.longList(endingWith: last))
        // The first ones would make setting the others take seconds each.
        for number in 0..<Self.schedules {
            _ = try await client.setSchedule("s\(number)", ["every": 1, "spec": spec, "suspended": true])
        }
        for number in 0..<Self.schedules { _ = try await client.setSchedule("s\(number)", isSuspended: false) }
    }

    private func removeSchedules(_ client: JobClient) async throws {
        for number in 0..<Self.schedules { try await client.removeSchedule("s\(number)") }
    }

    /// Connections over which as much is sent as is taken, and from which nothing is read.
    private func ignoreAnswers() async throws -> [Int32] {
        var descriptors: [Int32] = []
        for (text, connections) in FloodRequests.unread {
            let bytes = Array(text.utf8)
            for _ in 0..<connections {
                let descriptor = try await sockets.descriptor(of: 1)
                descriptors.append(descriptor)
                for _ in 0..<1_000 {
                    guard write(descriptor, bytes, bytes.count) == bytes.count else { break }
                }
            }
        }
        return descriptors
    }

    // MARK: Afterwards

    /// Waits until the statistics are as expected, even if the daemon has yet to release the memory of closed
    /// connections.
    private func wait(_ client: JobClient, until isSo: (JSON) -> Bool) async throws {
        while true {
            do { if isSo(try await client.stats()) { return } } catch {
                guard error.rpc?.kind == "busy" else { throw error }
            }
            try await Task.sleep(for: .milliseconds(20))
        }
    }

    /// Checks that nothing of a flood remains for the next one.
    private func cancelAll(_ client: JobClient) async throws {
        var filter = JobClient.Filter()
        filter.tag = "flood"
        filter.states = ["scheduled", "queued", "running"]
        while true {
            let jobs = try await client.list(filter).jobs
            if jobs.isEmpty { return }
            for job in jobs { _ = try? await client.change(job.id, .cancel) }
        }
    }

    /// The beginning of it.
    private static func answer(to request: String, over descriptor: Int32) -> String {
        var unsent = Array((request + "\n").utf8)[...]
        var answer: [UInt8] = []
        var buffer = [UInt8](repeating: 0, count: 1 << 16)
        while answer.last != UInt8(ascii: "\n") {
            let events = Int16(unsent.isEmpty ? POLLIN : POLLIN | POLLOUT)
            var polled = pollfd(fd: descriptor, events: events, revents: 0)
            guard poll(&polled, 1, 60_000) == 1 else { return "none in a minute" }
            if polled.revents & Int16(POLLOUT) != 0 {
                let count = unsent.withUnsafeBytes { write(descriptor, $0.baseAddress, $0.count) }
                if count > 0 { unsent.removeFirst(count) }
            }
            guard polled.revents & Int16(POLLIN | POLLHUP) != 0 else { continue }
            let count = read(descriptor, &buffer, buffer.count)
            guard count > 0 else { return "the connection was closed" }
            answer += buffer[..<count]
        }
        return String(decoding: answer.prefix(200), as: UTF8.self)
    }
}

extension String {
    fileprivate func padded(_ length: Int) -> String { padding(toLength: length, withPad: " ", startingAt: 0) }
}
