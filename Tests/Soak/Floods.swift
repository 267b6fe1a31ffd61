import Foundation
import Glibc
import JobClient
import JobModel

/// How long a user waits for small calls while another asks without a pause, beside how long without that.
///
/// `soak floods [SECONDS [NAME]]`: prints a row for each flood, and fails where the median of a call more than doubles twice. In
/// the last, `everything`, one user does all of it at once, with connections that are never read from, watches that are not and
/// lines without an end; then the daemon's memory at its peak has a bound too.
///
/// The figures are those of a quiet machine only; what the flood sends and reads takes processors too, so its threads run where
/// nobody else wants to.
struct Floods {
    /// More may be stored than a flood can submit: what is refused is no flood.
    static let configuration = """
        socket: {mode: "0666"}
        limits: {storedPerUser: 1099511627776}

        """

    private let sockets: UserSockets
    private let seconds: Double

    private static let submission =
        #"{"jsonrpc":"2.0","id":1,"method":"job.submit","params":{"source":{"type":"value","value":1},"delay":86400}}"#
    private static let list = #"{"jsonrpc":"2.0","id":1,"method":"job.list","params":{"limit":1000}}"#
    private static let longLine =
        #"{"jsonrpc":"2.0","id":1,"method":"server.info","params":["# + String(repeating: "1,", count: 500_000) + "1]}"

    private static let largeSubmission =
        #"{"jsonrpc":"2.0","id":1,"method":"job.submit","params":{"source":{"type":"value","value":""#
        + String(repeating: "x", count: 100_000) + #""},"delay":86400}}"#

    private static let longSpec =
        #"{"jsonrpc":"2.0","id":1,"method":"job.explain","params":"#
        + longList(endingWith: #"{"source":{"type":"value","value":0}}"#) + "}"

    /// A spec of half a MiB that takes long to check; with more the line would have too many values.
    private static func longList(endingWith job: String) -> String {
        #"{"source":{"type":"list","jobs":["#
            + String(
                repeating:
                    #"{"source":{"type":"value","value":[0,0]},"then":[{"fail":{"source":{"type":"value","value":0}}}]},"#,
                count: 6_000) + job + "]}}"
    }

    /// Each link has the value of 100 KB fill in what makes one of 800 KB.
    private static let expansions =
        #"{"jsonrpc":"2.0","id":1,"method":"job.submit","params":{"tags":["flood"],"source":{"type":"value","value":["#
        + Array(repeating: "\"" + String(repeating: "x", count: 100) + "\"", count: 1_000).joined(separator: ",")
        + #"]},"then":["#
        + ([
            #"{"then":{"return":["#
                + Array(repeating: #""{{input}}""#, count: 8).joined(separator: ",") + "]}}"
        ]
        + Array(
            repeating: #"{"then":{"return":["#
                + Array(repeating: #""{{input/0}}""#, count: 8).joined(separator: ",") + "]}}", count: 40))
        .joined(separator: ",") + "]}}"

    /// Children of which each fills in many expressions.
    private static let children =
        #"{"jsonrpc":"2.0","id":1,"method":"job.submit","params":{"tags":["flood"],"source":{"type":"each","in":["#
        + (0..<1_000).map(String.init).joined(separator: ",")
        + #"],"job":{"delay":86400,"source":{"type":"value","value":["#
        + Array(repeating: #""{{item}}""#, count: 10_000).joined(separator: ",") + "]}}}}}"

    /// Many children of one line.
    private static let longLists =
        #"{"jsonrpc":"2.0","id":1,"method":"job.submit","params":{"tags":["flood"],"source":{"type":"list","jobs":["#
        + Array(repeating: #"{"source":{"type":"value","value":0}}"#, count: 3_000).joined(separator: ",") + "]}}}"

    /// Schedules of such a spec that have a time every second.
    private static let schedules = 100

    private static let everything = "everything"

    /// What is sent over and over, as far as it is taken, by who reads no answer, and over how many connections: answers of
    /// half a MiB, watches, and the beginning of a line.
    private static let unread = [
        (list + "\n", 60),
        (#"{"jsonrpc":"2.0","id":1,"method":"job.watch","params":{"all":true,"interval":0.01}}"# + "\n", 8),
        (String(repeating: "[", count: 900_000), 40),
    ]

    /// The most that the daemon may have in memory meanwhile, in bytes.
    private static let mostMemory = 250_000_000

    /// More than so many times as long is too long.
    private static let mostTimes = 2.0

    /// The request, how many connections send it, and how many each has under way; without a request the flood is of schedules.
    /// `finished` are jobs of whoever sends it.
    private static func all(finished: [Int64]) -> [(String, String?, Int, Int)] {
        let ids = finished.map(String.init).joined(separator: ",")
        let wait = #"{"jsonrpc":"2.0","id":1,"method":"job.wait","params":{"jobs":[\#(ids)]}}"#
        return [
            ("list", list, 8, 4), ("wait", wait, 8, 4), ("submit", submission, 50, 100),
            ("large submit", largeSubmission, 50, 4), ("long line", longLine, 4, 2),
            ("long spec", longSpec, 4, 2), ("expansions", expansions, 4, 1), ("children", children, 4, 1),
            ("long lists", longLists, 4, 1), ("schedules", nil, 0, 0), (everything, nil, 0, 0),
        ]
    }

    /// Floods of this name only, where there is one.
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

    /// The floods that made others wait too long.
    func run() async throws -> [String] {
        let (other, noisy) = (try await sockets.client(of: 0), try await sockets.client(of: 1))
        let job = try await submit(other).id
        for _ in 0..<5_000 { _ = try await submit(noisy) }
        var finished: [Int64] = []
        for _ in 0..<1_000 { finished.append(try await noisy.submit(["source": ["type": "value", "value": 1]]).id) }
        print("flood        call         quiet median   p99 ms   flooded median   p99 ms   times")
        var tooLong: [String] = []
        for (name, request, connections, ahead) in Self.all(finished: finished)
        where self.name == nil || self.name == name {
            for call in ["submit", "submit again", "get", "get again"] {
                if call.hasSuffix("again"), tooLong.last != name + " " + call.dropLast(6) { continue }
                var (quiet, flooded): ([Double], [Double]) = ([], [])
                // In turns, as the machine has moods.
                for _ in 0..<2 {
                    quiet += try await measure(call, other, job)
                    var floods: [Flood] = []
                    var ignored: [Int32] = []
                    if let request {
                        floods.append(try await start(request, connections, ahead))
                    } else {
                        try await setSchedules(noisy)
                    }
                    if name == Self.everything {
                        for (_, request, connections, ahead) in Self.all(finished: finished) {
                            guard let request else { continue }
                            floods.append(try await start(request, connections, ahead, amongOthers: true))
                        }
                        ignored = try await ignoreAnswers()
                    }
                    flooded += try await measure(call, other, job)
                    for descriptor in ignored { close(descriptor) }
                    for flood in floods { flood.stop() }
                    try await waitForMemory(noisy)
                    if request == nil { try await removeSchedules(noisy) }
                    try await cancelAll(noisy)
                }
                if call.hasSuffix("again") { tooLong.removeLast() }
                let times = Self.quantile(flooded, 0.5) / Self.quantile(quiet, 0.5)
                print(
                    name.padding(toLength: 12, withPad: " ", startingAt: 0),
                    call.padding(toLength: 12, withPad: " ", startingAt: 0),
                    String(
                        format: "%12.3f %8.3f %16.3f %8.3f %7.2f", Self.quantile(quiet, 0.5),
                        Self.quantile(quiet, 0.99),
                        Self.quantile(flooded, 0.5), Self.quantile(flooded, 0.99), times))
                fflush(nil)
                // The machine has moods; a defect is there again.
                if times > Self.mostTimes { tooLong.append(name + " " + call) }
            }
            guard name == Self.everything else { continue }
            let peak = await sockets.asStarter(sample).peak
            print("\(name): the daemon had \(peak / 1_000_000) MB in memory at its peak")
            if peak > Self.mostMemory { tooLong.append("\(name): \(peak / 1_000_000) MB in memory") }
        }
        await other.close()
        await noisy.close()
        return tooLong
    }

    private func submit(_ client: JobClient) async throws -> JobClient.Submission {
        try await client.submit(["source": ["type": "value", "value": 1], "delay": 86_400])
    }

    /// Milliseconds that each of some calls takes, with a pause between them.
    private func measure(_ call: String, _ client: JobClient, _ job: Int64) async throws -> [Double] {
        var latencies: [Double] = []
        let end = ContinuousClock.now + .seconds(seconds / 4)
        while ContinuousClock.now < end {
            let start = ContinuousClock.now
            if call.hasPrefix("submit") { _ = try await submit(client) } else { _ = try await client.get(job) }
            latencies.append(start.duration(to: .now) / .milliseconds(1))
            try await Task.sleep(for: .milliseconds(3))
        }
        return latencies
    }

    private static func quantile(_ values: [Double], _ share: Double) -> Double {
        let sorted = values.sorted()
        return sorted.isEmpty ? .nan : sorted[min(sorted.count - 1, Int(Double(sorted.count) * share))]
    }

    /// Their jobs are refused once all of the spec was looked at, so that nothing of what is measured is that of jobs.
    private func setSchedules(_ client: JobClient) async throws {
        let spec = try JSON(parsing: Self.longList(endingWith: #"{"source":{"type":"url","url":"{{schedule/name}}"}}"#))
        for number in 0..<Self.schedules {
            _ = try await client.setSchedule("s\(number)", .every(1), spec: spec)
        }
    }

    /// Until the daemon has let go of what connections had that were closed.
    private func waitForMemory(_ client: JobClient) async throws {
        while true {
            do {
                _ = try await client.get(1)
                return
            } catch {
                guard error.rpc?.kind == "busy" else { return }
                try await Task.sleep(for: .milliseconds(50))
            }
        }
    }

    private func removeSchedules(_ client: JobClient) async throws {
        for number in 0..<Self.schedules { try await client.removeSchedule("s\(number)") }
    }

    /// Nothing of a flood is left for what comes next.
    private func cancelAll(_ client: JobClient) async throws {
        var filter = JobClient.Filter()
        filter.tag = "flood"
        filter.states = ["scheduled", "queued", "running"]
        while true {
            let jobs = try await client.list(filter).jobs
            if jobs.isEmpty { return }
            for job in jobs { _ = try? await client.cancel(job.id) }
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

    /// Connections over which as much is sent as is taken, and from which nothing is read.
    private func ignoreAnswers() async throws -> [Int32] {
        var descriptors: [Int32] = []
        for (text, connections) in Self.unread {
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

    private func start(
        _ request: String, _ connections: Int, _ ahead: Int, amongOthers: Bool = false
    ) async throws -> Flood {
        var descriptors: [Int32] = []
        for _ in 0..<connections { descriptors.append(try await sockets.descriptor(of: 1)) }
        // One that is refused at once would be no flood of what its row says.
        if request != Self.longLine, !amongOthers, let first = descriptors.first {
            let answer = Self.answer(to: request, over: first)
            guard answer.contains(#""result""#) else {
                throw SoakError("What is to be flooded with was refused: \(answer)")
            }
        }
        return Flood(descriptors, Array((request + "\n").utf8), ahead: ahead)
    }
}

/// Sends a request again and again over connections, as many at a time, on a thread of its own.
private final class Flood: Sendable {
    private let descriptors: [Int32]
    private let ended = DispatchSemaphore(value: 0)

    init(_ descriptors: [Int32], _ request: [UInt8], ahead: Int) {
        self.descriptors = descriptors
        Thread.detachNewThread { [ended] in
            Self.run(descriptors, request, ahead)
            ended.signal()
        }
    }

    /// Ends it, and returns once it has.
    func stop() {
        for descriptor in descriptors { shutdown(descriptor, Int32(SHUT_RDWR)) }
        ended.wait()
        for descriptor in descriptors { close(descriptor) }
    }

    /// `SCHED_IDLE` of <linux/sched.h>, which Glibc's module does not have.
    private static let idlePolicy: Int32 = 5

    private static func run(_ descriptors: [Int32], _ request: [UInt8], _ ahead: Int) {
        // Of this thread only; it is no failure where it cannot be.
        var parameters = sched_param()
        _ = sched_setscheduler(0, idlePolicy, &parameters)
        /// Bytes that each has yet to send.
        var unsent = descriptors.map { _ in ahead * request.count }
        var buffer = [UInt8](repeating: 0, count: 1 << 20)
        var polls = descriptors.map { pollfd(fd: $0, events: Int16(POLLIN | POLLOUT), revents: 0) }
        while poll(&polls, nfds_t(polls.count), -1) > 0 {
            for index in polls.indices {
                if polls[index].revents & Int16(POLLIN | POLLHUP) != 0 {
                    let count = read(descriptors[index], &buffer, buffer.count)
                    guard count > 0 else { return }
                    unsent[index] += request.count * buffer[..<count].count { $0 == UInt8(ascii: "\n") }
                }
                if polls[index].revents & Int16(POLLOUT) != 0, unsent[index] > 0 {
                    let start = (request.count - unsent[index] % request.count) % request.count
                    let sent = request.withUnsafeBytes { bytes in
                        write(descriptors[index], bytes.baseAddress?.advanced(by: start), request.count - start)
                    }
                    if sent > 0 { unsent[index] -= sent }
                }
                polls[index].events = Int16(POLLIN | (unsent[index] > 0 ? POLLOUT : 0))
            }
        }
    }
}
