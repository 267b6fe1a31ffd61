// swift-tools-version: 6.2
import PackageDescription

// Links to the modules that have code of their own for which a library exists too, so that one program measures both
// without building the rest: make bench-libraries
let settings: [SwiftSetting] = [
    .enableUpcomingFeature("ExistentialAny"),
    .enableUpcomingFeature("MemberImportVisibility"),
    .enableUpcomingFeature("InternalImportsByDefault"),
]
// The statements of the store are internal to it.
let testable = settings + [.unsafeFlags(["-enable-testing"])]

let package = Package(
    name: "Libraries",
    dependencies: [
        .package(url: "https://github.com/groue/GRDB.swift.git", from: "7.10.0"),
        .package(url: "https://github.com/apple/swift-system.git", from: "1.8.0"),
    ],
    targets: [
        .target(name: "JobModel", swiftSettings: settings),
        .target(name: "JobProtocol", dependencies: ["JobModel"], swiftSettings: settings),
        .target(name: "CSQLite", linkerSettings: [.linkedLibrary("sqlite3")]),
        .target(
            name: "JobStore",
            dependencies: [
                "CSQLite", "JobModel", .product(name: "SystemPackage", package: "swift-system"),
            ],
            swiftSettings: testable),
        .executableTarget(
            name: "librarybench",
            dependencies: ["JobModel", "JobProtocol", "JobStore", .product(name: "GRDB", package: "GRDB.swift")],
            path: "Sources/LibraryBench", swiftSettings: settings),
    ]
)
