import NIOCore
import TestOrigin

@testable import DataSources

extension Workbench {
    /// Runs `body` with a library and a server that follows `script`.
    static func run<Value: Sendable>(
        against script: @escaping ScriptedOrigin.Script, readsBodies: Bool = true, files: FileOperations = .real,
        timers: (any EventLoop)? = nil, names: Names = .system, _ change: (inout SourceSettings) -> Void = { _ in },
        _ body: (ScriptedOrigin, Workbench) async throws -> Value
    ) async throws -> Value {
        try await ScriptedOrigin.run(readsBodies: readsBodies, script) { origin in
            try await run(files: files, timers: timers, names: names, change) { bench in try await body(origin, bench) }
        }
    }

    /// Runs `body` with a library and a server that has `resources`.
    static func run<Value: Sendable>(
        serving resources: [String: OriginResource], files: FileOperations = .real, timers: (any EventLoop)? = nil,
        names: Names = .system, _ change: @escaping @Sendable (inout SourceSettings) -> Void = { _ in },
        _ body: @escaping @Sendable (TestOrigin, Workbench) async throws -> Value
    ) async throws -> Value {
        try await TestOrigin.run { origin in
            for (path, resource) in resources { origin[path] = resource }
            return try await run(files: files, timers: timers, names: names, change) { bench in
                try await body(origin, bench)
            }
        }
    }
}
