import JobEngine
import JobModel
import JobProtocol
import Synchronization

/// What waits to be sent to one client, in order and within a bound.
///
/// States: open, finishing (what is there is still sent), closed. Closed is terminal; what comes then is dropped. Progress
/// of one job to one watch that was not sent yet is merged, so it takes no more room however slow the client is.
final class Outbox: Sendable {
    fileprivate struct ProgressKey: Hashable {
        let watch: String
        let job: JobID
    }

    fileprivate enum Entry {
        case bytes([UInt8])
        case state(watch: String, JobEvent)
        case progress(ProgressKey, JobEvent, coalesced: Int)
    }

    fileprivate struct State {
        var entries: [Entry] = []
        var first = 0
        /// The place in `entries` of the progress that later progress is merged into.
        var progress: [ProgressKey: Int] = [:]
        var seqs: [ProgressKey: Int] = [:]
        /// Bytes of what waits, progress not counted.
        var size = 0
        var phase = Phase.open
        var reader: CheckedContinuation<[UInt8]?, Never>?
        /// The reader is about to be given what waits.
        var isDelivering = false
    }

    fileprivate enum Phase {
        case open
        case finishing
        case closed
    }

    /// How many bytes are sent at once.
    static let chunk = 256 << 10

    private let state = Mutex(State())
    private let limit: Int
    private let deliver: @Sendable (@escaping @Sendable () -> Void) -> Void
    private let overflowed: @Sendable () -> Void

    /// `deliver` runs what gives the reader all that has gathered by then; it may do so later, so that what comes together
    /// is sent together. `overflowed` is called once, when more than `limit` bytes wait; the outbox is closed then.
    init(
        limit: Int, deliver: @escaping @Sendable (@escaping @Sendable () -> Void) -> Void = { $0() },
        overflowed: @escaping @Sendable () -> Void
    ) {
        self.limit = limit
        self.deliver = deliver
        self.overflowed = overflowed
    }

    /// Sends an answer, which has no line end yet.
    func send(answer: [UInt8]) {
        var line = answer
        line.append(UInt8(ascii: "\n"))
        append(.bytes(line), size: line.count)
    }

    /// Sends lines with their ends.
    func send(lines: [UInt8]) {
        append(.bytes(lines), size: lines.count)
    }

    /// Sends what a watch has seen.
    func send(_ event: JobEvent, watch: String) {
        let key = ProgressKey(watch: watch, job: event.job)
        switch event.change {
        case .state:
            // Progress that comes after it stays behind it.
            append(.state(watch: watch, event), size: event.body.count + 96, ends: key)
        case .progress(_, _, _, let coalesced):
            let mustDeliver = state.withLock { state in
                guard state.phase == .open else { return false }
                if let place = state.progress[key], case .progress(_, _, let merged) = state.entries[place] {
                    state.entries[place] = .progress(key, event, coalesced: merged + coalesced + 1)
                    return false
                }
                state.progress[key] = state.entries.count
                state.entries.append(.progress(key, event, coalesced: coalesced))
                return state.mustDeliver()
            }
            if mustDeliver { deliverSoon() }
        }
    }

    private func deliverSoon() {
        deliver {
            let delivery = self.state.withLock { state in
                state.isDelivering = false
                return state.delivery()
            }
            delivery?.deliver()
        }
    }

    private func append(_ entry: Entry, size: Int, ends progress: ProgressKey? = nil) {
        let (mustDeliver, isOver) = state.withLock { state in
            guard state.phase == .open else { return (false, false) }
            if let progress { state.progress[progress] = nil }
            state.entries.append(entry)
            state.size += size
            guard state.size <= limit else {
                state.close()
                return (state.mustDeliver(), true)
            }
            return (state.mustDeliver(), false)
        }
        if mustDeliver { deliverSoon() }
        if isOver { overflowed() }
    }

    /// Lets what waits be sent, and takes nothing more.
    func finish() {
        let delivery = state.withLock { state -> Delivery? in
            if state.phase == .open { state.phase = .finishing }
            return state.delivery()
        }
        delivery?.deliver()
    }

    /// Drops what waits.
    func close() {
        let delivery = state.withLock { state -> Delivery? in
            state.close()
            return state.delivery()
        }
        delivery?.deliver()
    }

    /// The next bytes to send, as soon as there are some; nil at the end. There is one reader.
    func next() async -> [UInt8]? {
        await withCheckedContinuation { continuation in
            let delivery = state.withLock { state -> Delivery? in
                state.reader = continuation
                return state.delivery()
            }
            delivery?.deliver()
        }
    }

    fileprivate struct Delivery {
        let reader: CheckedContinuation<[UInt8]?, Never>
        let bytes: [UInt8]?
        func deliver() { reader.resume(returning: bytes) }
    }
}

extension Outbox.State {
    fileprivate mutating func close() {
        phase = .closed
        entries = []
        first = 0
        progress = [:]
        size = 0
    }

    /// Whether the reader waits and nobody is about to give it anything.
    fileprivate mutating func mustDeliver() -> Bool {
        guard reader != nil, !isDelivering else { return false }
        isDelivering = true
        return true
    }

    /// What the reader gets now, if it waits and there is something.
    fileprivate mutating func delivery() -> Outbox.Delivery? {
        guard let reader else { return nil }
        guard first < entries.count else {
            guard phase != .open else { return nil }
            self.reader = nil
            return Outbox.Delivery(reader: reader, bytes: nil)
        }
        self.reader = nil
        return Outbox.Delivery(reader: reader, bytes: take())
    }

    private mutating func take() -> [UInt8] {
        var bytes: [UInt8] = []
        while first < entries.count, bytes.count < Outbox.chunk {
            switch entries[first] {
            case .bytes(let line):
                size -= line.count
                bytes.append(contentsOf: line)
            case .state(let watch, let event):
                size -= event.body.count + 96
                bytes += line(.state, Outbox.ProgressKey(watch: watch, job: event.job), event, nil)
                if event.isLast { seqs[Outbox.ProgressKey(watch: watch, job: event.job)] = nil }
            case .progress(let key, let event, let coalesced):
                if progress[key] == first { progress[key] = nil }
                bytes += line(.progress, key, event, coalesced)
            }
            first += 1
        }
        if first == entries.count {
            entries.removeAll(keepingCapacity: entries.count < 4096)
            first = 0
        } else if first > 4096 {
            entries.removeFirst(first)
            for (key, place) in progress { progress[key] = place - first }
            first = 0
        }
        return bytes
    }

    private mutating func line(
        _ method: JobNotification.Method, _ key: Outbox.ProgressKey, _ event: JobEvent, _ coalesced: Int?
    ) -> [UInt8] {
        seqs[key, default: 0] += 1
        return JobNotification.line(
            method, watch: key.watch, job: key.job, seq: seqs[key, default: 1], body: event.body, coalesced: coalesced)
    }
}

extension JobEvent {
    /// The members that all watchers share.
    var body: [UInt8] {
        text {
            switch change {
            case .state(let state, let snapshot): JobNotification.state(state, snapshot: snapshot)
            case .progress(let link, let links, let progress, _):
                JobNotification.progress(link: link, links: links, progress: progress)
            }
        }
    }
}
