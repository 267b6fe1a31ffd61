import JobModel
import JobProtocol
import NIOCore

/// The calls of one connection that wait for answers, on the event loop of its channel.
final class ConnectionHandler: ChannelInboundHandler {
    typealias InboundIn = ByteBuffer
    typealias Waiter = CheckedContinuation<Result<JSON, JobClientError>, Never>

    private struct Call {
        /// Nil after its task was cancelled; the answer is then dropped.
        var waiter: Waiter?
        let length: Int
    }

    /// The daemon refuses calls beyond its `limits.inFlight`.
    private var calls: [Int: Call] = [:]
    private var ending: JobClientError?
    private var framer = LineFramer(limit: JobClient.maximumAnswerBytes)
    private var frames: [LineFramer.Frame] = []
    private let events: JobEvents
    private let channel: any Channel

    init(events: JobEvents, channel: any Channel) { (self.events, self.channel) = (events, channel) }

    /// Sends a call; calls made in one turn of the event loop go out in one write, by the first flush.
    func call(_ id: Int, line: [UInt8], waiter: Waiter) {
        if let ending { return waiter.resume(returning: .failure(ending)) }
        calls[id] = Call(waiter: waiter, length: line.count)
        channel.write(channel.allocator.buffer(bytes: line), promise: nil)
        channel.eventLoop.execute { [channel] in channel.flush() }
    }

    /// Stops waiting for an answer; the call still counts until the answer comes.
    func abandon(_ id: Int) {
        let error = JobClientError(.cancelled, "The task that made the call was cancelled before its answer came.")
        calls[id]?.waiter?.resume(returning: .failure(error))
        calls[id]?.waiter = nil
    }

    /// Fails all calls and closes the connection, because of `error` or because this side wants to.
    func end(_ error: JobClientError?) {
        guard ending == nil else { return }
        let reason = error ?? .closedHere
        ending = reason
        for call in calls.values { call.waiter?.resume(returning: .failure(reason)) }
        calls = [:]
        events.end(error)
        channel.close(promise: nil)
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        unwrapInboundIn(data).withUnsafeReadableBytes { framer.feed($0, into: &frames) }
        for frame in frames where ending == nil { receive(frame) }
        frames.removeAll(keepingCapacity: true)
    }

    func channelInactive(context: ChannelHandlerContext) {
        end(.closedThere)
        context.fireChannelInactive()
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) {
        end(
            JobClientError(.closed, "The connection to the daemon failed: \(error). Connect again.", underlying: error))
    }

    private func receive(_ frame: LineFramer.Frame) {
        guard case .line(let bytes) = frame else { return violate("it sent a line that is too long for this client") }
        let message: ServerMessage
        do { message = try ServerMessage(bytes) } catch { return violate(error.reason) }
        switch message {
        case .answer(.null, .failure(let error)): failed(JobClientError(error))
        case .answer(let id, let result):
            guard let call = id.int.flatMap({ calls.removeValue(forKey: $0) }) else {
                return violate("it answered a call that was never made")
            }
            call.waiter?.resume(returning: result.mapError(JobClientError.init))
        case .notification(let method, let params):
            // Methods of later versions are ignored.
            guard let method = JobNotification.Method(rawValue: method) else { return }
            guard let event = JobEvent(method, params, size: bytes.count) else {
                return violate("a notification \(method.rawValue) lacks a member")
            }
            if !events.append(event) { end(.slowReader) }
        case .batch: violate("it answered a batch that was never sent")
        }
    }

    /// An error without an id ends the connection, except that of a line that is too long: then the longest call fails.
    private func failed(_ error: JobClientError) {
        guard error.rpc?.kind == "line-too-long",
            let longest = calls.max(by: { $0.value.length < $1.value.length })?.key
        else { return end(error) }
        calls.removeValue(forKey: longest)?.waiter?.resume(returning: .failure(error))
    }

    private func violate(_ reason: String) {
        end(
            JobClientError(
                .protocolViolation, "The daemon violates the protocol: \(reason). Is it another version?"))
    }
}
