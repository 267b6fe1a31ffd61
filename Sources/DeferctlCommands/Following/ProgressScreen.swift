import Glibc
import JobClient
import JobModel

/// Lines on a terminal that are redrawn in place.
struct Drawing {
    private var columns: [Int] = []

    /// The text that replaces the lines on the screen by `lines`, and leaves the cursor behind the last one.
    mutating func replace(by lines: [String], _ size: ScreenSize) -> String {
        // A terminal that became narrower has broken the lines.
        let rows = columns.reduce(-1) { $0 + max(1, ($1 + size.columns - 1) / size.columns) }
        defer { columns = lines.map(\.paintedColumns) }
        if columns.isEmpty, lines.isEmpty { return "" }
        let text = lines.map { $0 + "\u{1B}[K" }.joined(separator: "\n")
        return (rows > 0 ? "\r\u{1B}[\(rows)A" : "\r") + text + "\u{1B}[J"
    }
}

/// Draws a display on standard error repeatedly.
actor ProgressScreen {
    private static let pause = Duration.milliseconds(100)

    private let console: Console
    private var display: any ProgressDisplay
    private var drawing = Drawing()
    private var standing: (lines: [String], size: ScreenSize)?
    private var isFinished = false

    init(console: Console, display: any ProgressDisplay) { (self.console, self.display) = (console, display) }

    func show(_ event: JobEvent) { write(display.render(event, now: .now)) }

    /// The jobs whose output is read for its last line.
    private static let mostLines = 50
    private var jobsWithLines: Set<Int64> = []

    /// Shows the last line of a program, if the event tells of output.
    func showLine(of event: JobEvent, from client: JobClient) async {
        guard console.showsMessages, event.isOutput,
            jobsWithLines.contains(event.job) || jobsWithLines.count < Self.mostLines
        else { return }
        jobsWithLines.insert(event.job)
        if let line = await client.lastLine(of: event.job) { display.set(line: line, of: event.job) }
    }

    /// Writes a message above the drawing.
    func say(_ message: String) {
        clear()
        console.say(message)
        draw()
    }

    /// Draws nothing any more.
    func finish() {
        guard !isFinished else { return }
        if display.stays { draw() } else { clear() }
        if display.stays, standing != nil { write("\n") }
        isFinished = true
    }

    private func clear() {
        write(drawing.replace(by: [], ScreenSize(of: console.messages)))
        standing = nil
    }

    /// Draws while `body` runs, in a separate task: a slow terminal does not delay the reading of events.
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
        let size = ScreenSize(of: console.messages)
        let lines = display.lines(now: .now, size: size)
        guard lines != standing?.lines ?? [] || size != standing?.size ?? size else { return }
        write(drawing.replace(by: lines, size))
        standing = (lines, size)
    }

    /// Errors are ignored: the work goes on even if its progress cannot be shown.
    private func write(_ text: String) {
        if !text.isEmpty { try? console.messages.write(text) }
    }
}

extension Timestamp {
    /// The present time by the system's clock, which JobModel does not read.
    static var now: Timestamp {
        var time = timespec()
        clock_gettime(CLOCK_REALTIME, &time)
        return Timestamp(milliseconds: Int64(time.tv_sec) * 1000 + Int64(time.tv_nsec) / 1_000_000)
    }
}
