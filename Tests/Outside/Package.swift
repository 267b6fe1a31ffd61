// swift-tools-version: 6.2
import PackageDescription

// A separate package that uses only the product DeferredKit, like a package of a user: make test-outside.
let settings: [SwiftSetting] =
    [
        .enableUpcomingFeature("ExistentialAny"),
        .enableUpcomingFeature("MemberImportVisibility"),
        .enableUpcomingFeature("InternalImportsByDefault"),
    ] + (Context.environment["DEFERD_STRICT"] == nil ? [] : [.treatAllWarnings(as: .error)])
    // Where each round is slow: under the sanitizers, and with threads that yield at every lock.
    + (Context.environment["DEFERRED_FEW_ROUNDS"] == nil ? [] : [.define("DEFERRED_FEW_ROUNDS")])

let package = Package(
    name: "Outside",
    dependencies: [.package(name: "deferd", path: "../..")],
    targets: [
        .testTarget(
            name: "OutsideTests",
            dependencies: [.product(name: "DeferredKit", package: "deferd")],
            swiftSettings: settings
        ),
        // A link to the main package's tests, the origins' behaviours among them: here the product alone passes them.
        .testTarget(
            name: "DeferredKitTests",
            dependencies: [.product(name: "DeferredKit", package: "deferd")],
            swiftSettings: settings
        ),
    ]
)
