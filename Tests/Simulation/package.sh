#!/bin/sh
# Makes a package in DIRECTORY that has nothing but the core, what it stands on and the simulator: built in a minute, where
# the whole package takes many. With `copy` as a second argument the sources are copied, so that they can be changed.
set -eu
cd "$(dirname "$0")/../.."
root=$PWD
scratch=$1
rm -rf "$scratch/Sources" "$scratch/Tests"
mkdir -p "$scratch/Sources"
if [ "${2:-}" = copy ]; then
    cp -R Sources/JobCore Sources/JobModel Tests/InMemoryStore "$scratch/Sources/"
else
    ln -s "$root/Sources/JobCore" "$root/Sources/JobModel" "$root/Tests/InMemoryStore" "$scratch/Sources/"
fi
ln -s "$root/Tests" "$scratch/Tests"
allocator=
[ -e /usr/include/jemalloc/jemalloc.h ] && allocator='.linkedLibrary("jemalloc")'
cat > "$scratch/Package.swift.new" <<PACKAGE
// swift-tools-version: 6.2
import PackageDescription

let ours: [SwiftSetting] = [
    .enableUpcomingFeature("ExistentialAny"), .enableUpcomingFeature("MemberImportVisibility"),
    .enableUpcomingFeature("InternalImportsByDefault"),
    .unsafeFlags(["-cross-module-optimization", "-enforce-exclusivity=unchecked"]),
]
let package = Package(
    name: "deferd",
    targets: [
        .target(name: "JobModel", swiftSettings: ours),
        .target(name: "JobCore", dependencies: ["JobModel"], swiftSettings: ours),
        .target(name: "InMemoryStore", dependencies: ["JobModel"], swiftSettings: ours),
        .executableTarget(
            name: "simulate", dependencies: ["InMemoryStore", "JobCore", "JobModel"],
            path: "Tests/Simulation", exclude: ["Mutants", "README.md", "mutants.sh", "package.sh", "seeds.txt"], swiftSettings: ours,
            linkerSettings: [$allocator]),
    ])
PACKAGE
# Only where it changed, or all would be planned anew.
cmp -s "$scratch/Package.swift.new" "$scratch/Package.swift" || cp "$scratch/Package.swift.new" "$scratch/Package.swift"
rm "$scratch/Package.swift.new"
