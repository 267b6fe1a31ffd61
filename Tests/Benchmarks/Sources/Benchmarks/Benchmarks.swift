import Foundation
import NIOCore
import NIOPosix

/// Compares DeferredKit with NIO's futures and with Swift's tasks: `swift run -c release Benchmarks [rounds] [name]`.
@main
enum Benchmarks {
    static func main() async throws {
        let arguments = CommandLine.arguments.dropFirst()
        let rounds = arguments.first.flatMap { Int($0) } ?? 15
        let name = arguments.dropFirst().first ?? ""
        let group = MultiThreadedEventLoopGroup(numberOfThreads: 1)
        print(row("ns each, median of \(rounds) rounds", ["DeferredKit", "NIO", "Task", "to NIO", "to Task"]))
        for contest in contests(on: group.next()) where name.isEmpty || contest.name.hasPrefix(name) {
            let result = try await contest.run(rounds: rounds)
            let times = [result.deferred, result.nio, result.task].map { String(format: "%.0f", $0) }
            let ratios = [result.toNIO, result.toTask].map { String(format: "%.2f", $0) }
            print(row(result.name, times + ratios))
        }
        try await group.shutdownGracefully()
    }

    private static func row(_ name: String, _ columns: [String]) -> String {
        let padded = columns.map { String(repeating: " ", count: max(13 - $0.count, 0)) + $0 }
        return name.padding(toLength: 34, withPad: " ", startingAt: 0) + padded.joined()
    }
}
