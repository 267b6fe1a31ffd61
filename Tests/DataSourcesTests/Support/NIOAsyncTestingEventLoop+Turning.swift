import NIOCore
import NIOEmbedded
import Testing

extension NIOAsyncTestingEventLoop {
    /// Turns the clock on step by step while `mustGoOn`, so that what is scheduled after each step gets its time as
    /// well.
    func turn(
        by step: TimeAmount, while mustGoOn: () -> Bool, sourceLocation: SourceLocation = #_sourceLocation
    ) async {
        var steps = 0
        while mustGoOn() {
            await advanceTime(by: step)
            // What else runs gets its turn, also where that is a server of the test.
            await Task.yield()
            steps += 1
            guard steps < 1_000_000 else {
                Issue.record(
                    "The clock was turned a million times, but nothing came of it.", sourceLocation: sourceLocation)
                return
            }
        }
    }
}
