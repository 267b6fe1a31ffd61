import AsyncHTTPClient
import JobModel
import NIOCore
import NIOHTTP1
import Synchronization

/// One response, received on an event loop and read from a task, in blocks as large as have come in.
///
/// States: `waiting` for the head, `receiving` its body, then `finished` or `failed`, which are terminal. What the
/// reader has not taken is bounded: at `limit` bytes the event loop is told to stop reading, and goes on once the
/// reader has taken it all. `open`, `next` and `close` come from one task; everything else from the event loop.
final class ResponseStream: HTTPClientResponseDelegate {
    typealias Response = Void

    /// Bytes beyond which the connection is not read from.
    static let limit = 1 << 20

    private enum Phase {
        case waiting
        case receiving
        case finished
        case failed(any Error)
    }

    private struct State {
        var phase = Phase.waiting
        var head: HTTPResponseHead?
        var blocks: [ByteBuffer] = []
        var buffered = 0
        /// The reader, where it waits, and whether it is about to be woken.
        var reader: CheckedContinuation<Void, Never>?
        var isWaking = false
        /// Given to the client for the block that filled the buffer.
        var room: EventLoopPromise<Void>?
        var task: HTTPClient.Task<Void>?
        var isClosed = false
        /// When the server last sent or took something; nil before the request is out.
        var lastActivity: NIODeadline?
        var idleCheck: Scheduled<Void>?
    }

    private let state = Mutex(State())
    private let loop: any EventLoop
    private let idleTimeout: TimeAmount

    init(loop: any EventLoop, idleTimeout: TimeAmount) {
        self.loop = loop
        self.idleTimeout = idleTimeout
    }

    // MARK: The reader's side

    /// Waits for the head of the response to the request that `task` makes.
    func open(_ task: HTTPClient.Task<Void>) async throws -> HTTPResponseHead {
        let isOver = state.withLock { state in
            state.task = task
            if case .failed = state.phase { return true }
            return false
        }
        // Ended before there was a task to end.
        if isOver { task.cancel() }
        while true {
            let found: Result<HTTPResponseHead?, any Error> = state.withLock { state in
                if let head = state.head { return .success(head) }
                if case .failed(let error) = state.phase { return .failure(error) }
                return .success(nil)
            }
            if let head = try found.get() { return head }
            await wait { $0.head != nil }
        }
    }

    /// Takes everything that has come in; waits where nothing has; nil at the end of the body.
    func next() async throws -> [ByteBuffer]? {
        while true {
            let (found, room): (Result<[ByteBuffer]?, any Error>?, EventLoopPromise<Void>?) = state.withLock { state in
                guard state.blocks.isEmpty else {
                    defer {
                        state.blocks = []
                        state.buffered = 0
                        state.room = nil
                        state.lastActivity = .now()
                    }
                    return (.success(state.blocks), state.room)
                }
                switch state.phase {
                case .finished: return (.success(nil), nil)
                case .failed(let error): return (.failure(error), nil)
                case .waiting, .receiving: return (nil, nil)
                }
            }
            room?.succeed()
            if let found { return try found.get() }
            await wait { !$0.blocks.isEmpty }
        }
    }

    /// Ends the transfer where it is still going on. What has come in is forgotten.
    func close() {
        end(with: HTTPClientError.cancelled, forgetting: true)
    }

    /// Lets the transfer fail where it is still going on. What has come in can still be read.
    func fail(_ error: JobError) {
        end(with: error, forgetting: false)
    }

    private func end(with error: any Error, forgetting: Bool) {
        let (task, reader, room, check) = state.withLock { state in
            if forgetting {
                state.isClosed = true
                state.blocks = []
            }
            defer {
                state.reader = nil
                state.room = nil
                state.idleCheck = nil
            }
            switch state.phase {
            case .finished, .failed: return (HTTPClient.Task<Void>?.none, state.reader, state.room, state.idleCheck)
            case .waiting, .receiving:
                state.phase = .failed(error)
                return (state.task, state.reader, state.room, state.idleCheck)
            }
        }
        task?.cancel()
        room?.fail(error)
        check?.cancel()
        reader?.resume()
    }

    /// Waits until `isDue` or the end.
    private func wait(until isDue: @Sendable (borrowing State) -> Bool) async {
        await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                let isOver = state.withLock { state in
                    switch state.phase {
                    case .finished, .failed: return true
                    case .waiting, .receiving: break
                    }
                    if isDue(state) { return true }
                    if state.lastActivity != nil { state.lastActivity = .now() }
                    state.reader = continuation
                    return false
                }
                if isOver { continuation.resume() }
            }
        } onCancel: {
            close()
        }
    }

    // MARK: The event loop's side

    func didSendRequestHead(task: HTTPClient.Task<Void>, _ head: HTTPRequestHead) {
        state.withLock { $0.lastActivity = .now() }
        checkIdleness(after: idleTimeout)
    }

    func didSendRequestPart(task: HTTPClient.Task<Void>, _ part: IOData) {
        state.withLock { $0.lastActivity = .now() }
    }

    func didReceiveHead(task: HTTPClient.Task<Void>, _ head: HTTPResponseHead) -> EventLoopFuture<Void> {
        update { state in
            guard case .waiting = state.phase else { return }
            state.phase = .receiving
            state.head = head
        }
        return loop.makeSucceededVoidFuture()
    }

    func didReceiveBodyPart(task: HTTPClient.Task<Void>, _ buffer: ByteBuffer) -> EventLoopFuture<Void> {
        var room: EventLoopFuture<Void>?
        update { state in
            guard !state.isClosed, buffer.readableBytes > 0 else { return }
            state.blocks.append(buffer)
            state.buffered += buffer.readableBytes
            guard state.buffered >= Self.limit else { return }
            let promise = loop.makePromise(of: Void.self)
            state.room = promise
            room = promise.futureResult
        }
        return room ?? loop.makeSucceededVoidFuture()
    }

    func didReceiveError(task: HTTPClient.Task<Void>, _ error: any Error) {
        update { state in
            switch state.phase {
            case .waiting, .receiving: state.phase = .failed(error)
            case .finished, .failed: break
            }
        }
    }

    func didFinishRequest(task: HTTPClient.Task<Void>) {
        update { state in
            if case .receiving = state.phase { state.phase = .finished }
        }
    }

    /// Changes the state and wakes the reader.
    private func update(_ change: (inout State) -> Void) {
        let (mustWake, check) = state.withLock { state in
            change(&state)
            state.lastActivity = .now()
            let mustWake = state.reader != nil && !state.isWaking
            if mustWake { state.isWaking = true }
            switch state.phase {
            case .finished, .failed:
                defer { state.idleCheck = nil }
                return (mustWake, state.idleCheck)
            case .waiting, .receiving: return (mustWake, nil)
            }
        }
        check?.cancel()
        // After what else this read of the socket brings: a small response is read with one waking.
        if mustWake { loop.execute { self.wake() } }
    }

    private func wake() {
        let reader = state.withLock { state in
            state.isWaking = false
            defer { state.reader = nil }
            return state.reader
        }
        reader?.resume()
    }

    /// Looks again when the server could have been silent for too long.
    private func checkIdleness(after delay: TimeAmount) {
        let check = loop.scheduleTask(in: delay) { [weak self] in
            guard let self else { return }
            let now = NIODeadline.now()
            let (task, silence) = self.state.withLock { state in
                // While the reader is the slow one, nothing is expected of the server.
                let last = state.room == nil && state.reader != nil ? state.lastActivity ?? now : now
                return (state.task, now - last)
            }
            if silence < self.idleTimeout {
                self.checkIdleness(after: self.idleTimeout - silence)
            } else {
                task?.fail(reason: HTTPClientError.readTimeout)
            }
        }
        let isOver = state.withLock { state in
            switch state.phase {
            case .finished, .failed: return true
            case .waiting, .receiving:
                state.idleCheck = check
                return false
            }
        }
        if isOver { check.cancel() }
    }
}
