#!/bin/sh
# Makes a package in DIRECTORY out of the main one, in which our own modules are built for libFuzzer and the address
# sanitizer, and which has the fuzzers: `package` names are visible to them, and nothing else depends on their flags.
set -eu
cd "$(dirname "$0")/../.."
root=$PWD
scratch=$1
mkdir -p "$scratch"
for name in Sources Tests config; do ln -sfn "$root/$name" "$scratch/$name"; done
rm -rf "$scratch/Configuration"
mkdir -p "$scratch/Configuration"
ln -s "$root"/Sources/deferd/*.swift "$root"/Tests/Fuzz/Programs/configuration/*.swift "$scratch/Configuration/"
# The fuzzer has a main of its own.
rm "$scratch/Configuration/Deferd.swift"
sed 's/^@main$//' Sources/deferd/Deferd.swift > "$scratch/Configuration/Deferd.swift"
library=$(dirname "$("${SWIFT:-swift}" -print-target-info | sed -n 's/.*"runtimeResourcePath": "\(.*\)".*/\1/p')")/clang
library=$(ls "$library"/*/lib/linux/libclang_rt.fuzzer_no_main-"$(uname -m)".a | head -1)
{
    cat Package.swift
    cat <<PACKAGE

/// Each part of the code that an input reaches; what is not ours is built as always.
let fuzzed: Set = ["JobModel", "JobProtocol", "JobCore", "JobStore", "DataSources", "LoopTasks", "DeferredKit", "FuzzBodies", "FuzzSourceBodies"]
let instrumented: [SwiftSetting] = [.unsafeFlags(["-sanitize=fuzzer,address"])]
let linked: [LinkerSetting] = [.unsafeFlags(["-use-ld=lld", "-sanitize=address", "$library", "-lstdc++"])]
for target in package.targets where fuzzed.contains(target.name) {
    target.swiftSettings = (target.swiftSettings ?? []) + instrumented
}
func fuzzer(_ name: String, _ dependencies: [Target.Dependency] = [], path: String? = nil) -> Target {
    .executableTarget(
        name: "fuzz-\(name)", dependencies: ["FuzzBodies", "Fuzzing"] + dependencies,
        path: path ?? "Tests/Fuzz/Programs/\(name)", swiftSettings: ours + instrumented, linkerSettings: linked)
}
package.targets = package.targets.filter { !\$0.isTest } + [
    .target(name: "CLibFuzzer", path: "Tests/Fuzz/CLibFuzzer"),
    .target(
        name: "Fuzzing", dependencies: ["CLibFuzzer"], path: "Tests/Fuzz/Programs/Fuzzing",
        swiftSettings: ours),
    fuzzer("lines"), fuzzer("spec"), fuzzer("calendar"), fuzzer("http", ["FuzzSourceBodies"]),
    fuzzer("sources", ["FuzzSourceBodies"]), fuzzer("state", ["FuzzSourceBodies"]),
    fuzzer("configuration", package.targets.first { \$0.name == "deferd" }?.dependencies ?? [], path: "Configuration"),
]
PACKAGE
} > "$scratch/Package.swift.new"
# Only if it changed, or SwiftPM would plan everything again.
cmp -s "$scratch/Package.swift.new" "$scratch/Package.swift" || cp "$scratch/Package.swift.new" "$scratch/Package.swift"
rm "$scratch/Package.swift.new"
