// swift-tools-version: 6.2
import Foundation
import PackageDescription

/// Settings of all our targets; `DEFERD_STRICT=1` (set by `make lint` and CI) turns warnings into errors.
let ours: [SwiftSetting] =
    [
        .enableUpcomingFeature("ExistentialAny"),
        .enableUpcomingFeature("MemberImportVisibility"),
        .enableUpcomingFeature("InternalImportsByDefault"),
    ] + (Context.environment["DEFERD_STRICT"] == nil ? [] : [.treatAllWarnings(as: .error)])

/// jemalloc if its development files are installed (`.ci/prepare` installs them), otherwise the C library's allocator.
/// Memory that one thread allocates and another frees, as in every submission, costs less in jemalloc.
let allocator: [LinkerSetting] =
    FileManager.default.fileExists(atPath: "/usr/include/jemalloc/jemalloc.h") ? [.linkedLibrary("jemalloc")] : []

/// Whether libpq's development files are installed (`.ci/prepare` installs them); deferd has no PostgreSQL otherwise.
let hasPostgreSQL = FileManager.default.fileExists(atPath: "/usr/include/postgresql/libpq-fe.h")
let postgreSQL: [Target.Dependency] = hasPostgreSQL ? ["PostgreSQLStore"] : []
let postgreSQLTargets: [Target] =
    hasPostgreSQL
    ? [
        .target(name: "CPostgreSQL"),
        .target(name: "PostgreSQLStore", dependencies: ["CPostgreSQL", "JobModel", "JobStore"], swiftSettings: ours),
    ] : []

/// Builds of DeferredKit for its tests: `DEFERRED_YIELDS=1` yields threads at its locks, and `DEFERRED_DEFECT=name`
/// adds a defect that the tests must find (`make test-yields`, `make test-defects`).
let trials: [SwiftSetting] =
    (Context.environment["DEFERRED_YIELDS"] == nil ? [] : [.define("DEFERRED_YIELDS")])
    + (Context.environment["DEFERRED_DEFECT"].map { [.define("DEFECT_\($0)")] } ?? [])

/// Programs with a sanitizer cannot be linked statically (`.ci/kit asan`).
let guardLinking = Context.environment["DEFERD_SANITIZED"] == nil ? "-static-executable" : "-static-stdlib"

let nio: [Target.Dependency] = [
    .product(name: "NIOCore", package: "swift-nio"),
    .product(name: "NIOPosix", package: "swift-nio"),
]
let deque = Target.Dependency.product(name: "DequeModule", package: "swift-collections")
let log = Target.Dependency.product(name: "Logging", package: "swift-log")
let system = Target.Dependency.product(name: "SystemPackage", package: "swift-system")
let services = Target.Dependency.product(name: "ServiceLifecycle", package: "swift-service-lifecycle")
let arguments = Target.Dependency.product(name: "ArgumentParser", package: "swift-argument-parser")

let package = Package(
    name: "deferd",
    products: [
        .library(name: "DeferredKit", targets: ["DeferredKit"]),
        .library(name: "DataSources", targets: ["DataSources"]),
        .library(name: "JobClient", targets: ["JobClient"]),
        .executable(name: "deferd", targets: ["deferd"]),
        .executable(name: "deferctl", targets: ["deferctl"]),
    ],
    traits: [
        // Programs built without it link no Foundation, whose ICU data takes 34 MB.
        .trait(name: "OperationQueues", description: "DeferredKit's executor for Foundation's OperationQueue."),
        .default(enabledTraits: ["OperationQueues"]),
    ],
    dependencies: [
        .package(url: "https://github.com/apple/swift-nio.git", from: "2.100.0"),
        .package(url: "https://github.com/apple/swift-nio-ssl.git", from: "2.30.0"),
        .package(url: "https://github.com/swift-server/swift-service-lifecycle.git", from: "2.13.0"),
        .package(url: "https://github.com/apple/swift-argument-parser.git", from: "1.8.0"),
        .package(url: "https://github.com/apple/swift-log.git", from: "1.16.0"),
        .package(url: "https://github.com/apple/swift-system.git", from: "1.8.0"),
        .package(url: "https://github.com/apple/swift-collections.git", from: "1.6.0"),
    ],
    targets: [
        .target(name: "DeferredKit", swiftSettings: ours + trials),
        .target(name: "JobModel", swiftSettings: ours),
        .target(name: "JobCore", dependencies: ["JobModel"], swiftSettings: ours),
        .target(name: "CLinux"),
        // Without Swift's runtime, which SwiftPM links into C programs too. Static, as a fork for each program copies the mappings
        // of libraries, and each child binds their symbols again: linked dynamically, the bench row `programs` gives a tenth less.
        .executableTarget(
            name: "deferd-guard", dependencies: ["CLinux"],
            linkerSettings: [.unsafeFlags(["-nostartfiles", guardLinking])]),
        .target(name: "CTuning"),
        .systemLibrary(name: "CCrypto", pkgConfig: "libcrypto", providers: [.apt(["libssl-dev"])]),
        .systemLibrary(name: "CIDN", pkgConfig: "libidn2", providers: [.apt(["libidn2-dev"])]),
        .systemLibrary(name: "CZlib", pkgConfig: "zlib", providers: [.apt(["zlib1g-dev"])]),
        .target(
            name: "LoopTasks", dependencies: ["DeferredKit", .product(name: "NIOCore", package: "swift-nio")],
            swiftSettings: ours),
        .target(
            name: "DataSources",
            dependencies: [
                "CCrypto", "CIDN", "CLinux", "CZlib", "DeferredKit", "JobModel", "LoopTasks",
                .product(name: "NIOTLS", package: "swift-nio"),
                .product(name: "NIOSSL", package: "swift-nio-ssl"),
                log, system,
            ] + nio,
            swiftSettings: ours
        ),
        .target(name: "CSQLite", linkerSettings: [.linkedLibrary("sqlite3")]),
        .target(
            name: "JobStore",
            dependencies: ["CLinux", "CSQLite", "JobModel", system],
            swiftSettings: ours
        ),
        .target(
            name: "JobEngine",
            dependencies: [
                "CLinux", "DeferredKit", "JobModel", "JobCore", "DataSources", deque, log, system,
            ],
            swiftSettings: ours
        ),
        .target(name: "JobProtocol", dependencies: ["JobModel"], swiftSettings: ours),
        .target(
            name: "JobServer",
            dependencies: [
                "CLinux", "JobModel", "JobProtocol", "LoopTasks", "JobCore", "JobEngine", log,
                services, system,
            ]
                + nio,
            swiftSettings: ours
        ),
        .target(name: "JobClient", dependencies: ["JobModel", "JobProtocol", system] + nio, swiftSettings: ours),
        .systemLibrary(name: "CYaml", pkgConfig: "yaml-0.1", providers: [.apt(["libyaml-dev"])]),
        .target(name: "YAML", dependencies: ["CYaml", "JobModel"], swiftSettings: ours),
        .systemLibrary(name: "CSystemd", pkgConfig: "libsystemd", providers: [.apt(["libsystemd-dev"])]),
        .target(name: "Systemd", dependencies: ["CSystemd", "JobModel", log, system], swiftSettings: ours),
        .target(
            name: "DeferctlCommands",
            dependencies: ["JobClient", "JobModel", "JobProtocol", "YAML", arguments, system],
            swiftSettings: ours
        ),
        .executableTarget(
            name: "deferd",
            dependencies: [
                // Builds the program that the target runs.
                "deferd-guard",
                "CLinux", "CTuning", "DataSources", "DeferredKit", "JobModel", "JobProtocol", "JobServer", "LoopTasks",
                "JobCore", "JobEngine", "JobStore", "Systemd", "YAML",
                arguments, log, services, system,
                .product(name: "NIOConcurrencyHelpers", package: "swift-nio"),
                .product(name: "UnixSignals", package: "swift-service-lifecycle"),
            ] + nio + postgreSQL,
            swiftSettings: ours,
            linkerSettings: allocator
        ),
        .executableTarget(name: "deferctl", dependencies: ["DeferctlCommands"], swiftSettings: ours),

        // The example that is installed beside those in other languages.
        .executableTarget(
            name: "ExampleClient", dependencies: ["JobClient", "JobModel"], path: "config/examples",
            exclude: ["client.py", "client.sh"], swiftSettings: ours),

        .target(name: "TestOrigin", dependencies: nio, path: "Tests/TestOrigin", swiftSettings: ours),
        .target(name: "TestSupport", path: "Tests/TestSupport", swiftSettings: ours),
        // A store in memory for the tests of the core and the engine, and for the simulator.
        .target(name: "InMemoryStore", dependencies: ["JobModel"], path: "Tests/InMemoryStore", swiftSettings: ours),
        .target(name: "FakeDaemon", dependencies: ["JobModel"], path: "Tests/FakeDaemon", swiftSettings: ours),
        .executableTarget(
            name: "demo", dependencies: nio, path: "Tests/Demo", swiftSettings: ours),
        .executableTarget(
            name: "crash",
            dependencies: [
                "DataSources", "JobClient", "JobModel", "JobCore", "JobEngine", "JobStore", "TestOrigin",
                "TestSupport",
                log, system,
            ] + nio,
            path: "Tests/Crash", swiftSettings: ours),
        .executableTarget(
            name: "soak",
            dependencies: ["JobClient", "JobModel", "TestSupport", .product(name: "NIOSSL", package: "swift-nio-ssl")]
                + nio,
            path: "Tests/Soak", swiftSettings: ours),
        .executableTarget(
            name: "simulate", dependencies: ["InMemoryStore", "JobCore", "JobModel"],
            path: "Tests/Simulation", exclude: ["Mutants", "README.md", "mutants.sh", "package.sh", "seeds.txt"],
            swiftSettings: ours),
        // Uses the products like a program in another package, without access to `package` declarations.
        .executableTarget(
            name: "outside", dependencies: ["DataSources", "DeferredKit"], path: "Tests/Outside/App",
            packageAccess: false, swiftSettings: ours),
        // The bodies of the fuzzers (`make fuzz`); a test runs them with the committed inputs.
        .target(
            name: "FuzzBodies", dependencies: ["JobModel", "JobProtocol"], path: "Tests/Fuzz/Bodies",
            swiftSettings: ours),
        .target(
            name: "FuzzSourceBodies",
            dependencies: [
                "DataSources", "DeferredKit", "FuzzBodies", "JobModel", "JobCore", "JobStore", log,
            ] + nio,
            path: "Tests/Fuzz/SourceBodies", swiftSettings: ours),
        .target(name: "MallocCounter", path: "Tests/MallocCounter"),
        .testTarget(name: "DeferredKitTests", dependencies: ["DeferredKit"], swiftSettings: ours),
        .testTarget(
            name: "JobModelTests", dependencies: ["JobModel", "TestSupport"], resources: [.copy("Fixtures")],
            swiftSettings: ours),
        .testTarget(
            name: "FuzzTests", dependencies: ["FuzzBodies", "FuzzSourceBodies", "TestSupport"], swiftSettings: ours),
        .testTarget(
            name: "SimulationTests", dependencies: ["TestSupport", "simulate"], swiftSettings: ours),
        .testTarget(
            name: "JobCoreTests", dependencies: ["InMemoryStore", "JobCore", "JobModel"], swiftSettings: ours),
        .testTarget(
            name: "DataSourcesTests",
            dependencies: [
                "DataSources", "DeferredKit", "JobModel", "LoopTasks", "TestOrigin", "TestSupport", log, system,
                .product(name: "NIOEmbedded", package: "swift-nio"),
                .product(name: "NIOSSL", package: "swift-nio-ssl"),
            ] + nio,
            exclude: ["RealServers"],
            swiftSettings: ours),
        .testTarget(
            name: "JobStoreTests",
            dependencies: ["CSQLite", "InMemoryStore", "JobModel", "JobStore", "TestSupport"] + postgreSQL,
            swiftSettings: ours),
        .testTarget(
            name: "JobEngineTests",
            dependencies: [
                "DataSources", "DeferredKit", "InMemoryStore", "JobModel", "JobCore", "JobEngine", "TestOrigin",
                "TestSupport", log, system,
            ] + nio,
            swiftSettings: ours),
        .testTarget(
            name: "JobProtocolTests", dependencies: ["MallocCounter", "JobProtocol", "JobModel"],
            resources: [.copy("Fixtures")],
            swiftSettings: ours),
        .testTarget(
            name: "JobServerTests",
            dependencies: [
                "JobServer", "JobModel", "JobProtocol", "JobCore", "JobEngine", "TestSupport", log,
                .product(name: "NIOEmbedded", package: "swift-nio"),
            ] + nio,
            swiftSettings: ours),
        .testTarget(
            name: "JobClientTests", dependencies: ["FakeDaemon", "JobClient", "JobModel", "JobProtocol"] + nio,
            swiftSettings: ours),
        .testTarget(
            name: "DeferctlCommandsTests",
            dependencies: ["DeferctlCommands", "FakeDaemon", "JobClient", "JobModel", "JobProtocol", arguments] + nio,
            swiftSettings: ours),
        // The programs that these two run are not dependencies, because they would be linked into the tests with their
        // allocator.
        .testTarget(
            name: "SystemdTests", dependencies: ["JobModel", "Systemd", "TestSupport", log],
            exclude: ["boot.sh", "package.sh"],
            swiftSettings: ours),
        .testTarget(
            name: "EndToEndTests",
            dependencies: ["FakeDaemon", "JobClient", "JobModel", "JobProtocol", "TestOrigin", "TestSupport"],
            swiftSettings: ours
        ),
    ] + postgreSQLTargets
)
