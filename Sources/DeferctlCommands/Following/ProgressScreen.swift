import Glibc
import JobClient
import JobModel

/// Writes what a display draws to standard error, again and again.
actor ProgressScreen {
    /// The pause between two drawings.
    private static let pause = Duration.milliseconds(100)

    private let console: Console
    private var display: any ProgressDisplay
    /// What is on the screen.
    private var standing = ""
    private var isFinished = false

    init(console: Console, display: any ProgressDisplay) {
        self.console = console
        self.display = display
    }

    func show(_ event: JobEvent) {
        write(display.render(event, now: .now))
    }

    /// Writes a message above what is being shown.
    func say(_ message: String) {
        write(display.clear())
        standing = ""
        console.say(message)
        draw()
    }

    private func finish() {
        isFinished = true
        if console.showsMessages { write(display.end(now: .now, size: ScreenSize(of: console.messages))) }
    }

    /// Draws over and over while `body` runs.
    ///
    /// Drawing has a task of its own, so that a slow terminal never delays the reading of events.
    nonisolated func showing<Value: Sendable>(
        _ body: @Sendable @escaping () async throws -> Value
    ) async throws -> Value {
        guard console.showsMessages else { return try await body() }
        return try await withThrowingTaskGroup(of: Void.self) { group in
            group.addTask {
                while !Task.isCancelled {
                    try? await Task.sleep(for: Self.pause)
                    if !Task.isCancelled { await self.draw() }
                }
            }
            defer { group.cancelAll() }
            do {
                let value = try await body()
                await finish()
                return value
            } catch {
                await finish()
                throw error
            }
        }
    }

    private func draw() {
        guard console.showsMessages, !isFinished else { return }
        let drawing = display.draw(now: .now, size: ScreenSize(of: console.messages))
        guard drawing != standing else { return }
        write(drawing)
        standing = drawing
    }

    private func write(_ text: String) {
        // Where progress cannot be shown, the work goes on nevertheless.
        if !text.isEmpty { try? console.messages.write(text) }
    }
}

extension Timestamp {
    /// The present time by the system's clock. The sources have one of their own (`IncomingResponse.swift`): JobModel, all that
    /// both sides share, reads no clock.
    static var now: Timestamp {
        var time = timespec()
        clock_gettime(CLOCK_REALTIME, &time)
        return Timestamp(milliseconds: Int64(time.tv_sec) * 1000 + Int64(time.tv_nsec) / 1_000_000)
    }
}
