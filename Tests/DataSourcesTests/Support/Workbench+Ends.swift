import DataSources
import DeferredKit
import JobModel
import NIOCore
import NIOEmbedded
import NIOPosix
import Testing

/// What ends a transfer before its time.
enum TransferEnd: CaseIterable {
    case timeout, cancel, stop
}

extension Workbench {
    /// Waits until the event loops have done what was set off on them, one step after the other.
    static func settle() async throws {
        for _ in 0..<8 {
            for loop in MultiThreadedEventLoopGroup.singleton.makeIterator() { try await loop.submit {}.get() }
        }
    }

    /// Ends a transfer with a timeout of 50 seconds; it must have ended when this returns.
    func end(
        _ deferred: Deferred<JSON, any Error>, by end: TransferEnd, _ clock: NIOAsyncTestingEventLoop
    ) async throws {
        switch end {
        case .timeout:
            await clock.advanceTime(by: .seconds(50))
            #expect(try await failure(of: deferred).kind == .timeout)
        case .cancel:
            deferred.cancel()
            await #expect(throws: CancellationError.self) { try await deferred.get() }
        case .stop:
            await library.shutdown()
            guard case .failure(let error as JobError) = deferred.outcome else {
                Issue.record("It is still running after the shutdown.")
                return
            }
            #expect(error.kind == .cancelled)
        }
    }
}

extension Deferred {
    /// Waits until as much as `size` is said to be there.
    func progress(reaches size: Int64) async {
        let (sizes, report) = AsyncStream.makeStream(of: Int64.self)
        onProgress { report.yield($0.completed) }
        for await each in sizes where each >= size { break }
    }
}
