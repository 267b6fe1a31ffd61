import Foundation
import NIOCore
import NIOPosix

/// Compares DeferredKit with NIO's futures and with Swift's tasks and prints a table: `Benchmarks [rounds] [name]`.
@main
enum Benchmarks {
    static func main() async throws {
        let arguments = CommandLine.arguments.dropFirst()
        let rounds = max(arguments.first.flatMap { Int($0) } ?? 30, 1)
        let name = arguments.dropFirst().first ?? ""
        let group = MultiThreadedEventLoopGroup(numberOfThreads: 1)
        print(row(["ns each, \(rounds) rounds", "DeferredKit", "NIO", "Task", "to NIO", "to Task"]))
        print(row(Array(repeating: "---", count: 6)))
        for contest in contests(on: group.next()) where contest.name.hasPrefix(name) {
            let result = try await contest.run(rounds: rounds)
            let times = result.nanoseconds.map { String(format: "%.0f", $0) }
            print(row([contest.name] + times + [text(result.toNIO), text(result.toTask)]))
        }
        try await group.shutdownGracefully()
    }

    /// A row as Markdown has it.
    private static func row(_ columns: [String]) -> String {
        "| " + columns.joined(separator: " | ") + " |"
    }

    private static func text(_ spread: Spread) -> String {
        String(format: "%.2f (%.2f to %.2f)", spread.median, spread.low, spread.high)
    }
}
