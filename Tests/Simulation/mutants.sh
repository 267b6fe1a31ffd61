#!/bin/sh
# Puts every defect of Mutants into a copy of the core, builds that once, and runs the simulator with each of them alive.
# Prints for each the seed and the invariant that find it; exits 1 where one survives. Arguments name those to try.
set -eu
cd "$(dirname "$0")/../.."
root=$PWD
scratch=$root/.build/mutants
swift=${SWIFT:-swift}
"$swift" build -c release --product simulate
rm -rf "$scratch/Sources" "$scratch/Tests" "$scratch/Package.swift"
mkdir -p "$scratch/Sources/JobStore"
cp -R Sources/JobCore Sources/JobModel "$scratch/Sources/"
cp -R Sources/JobStore/Memory Sources/JobStore/JobState+Code.swift "$scratch/Sources/JobStore/"
rm "$scratch/Sources/JobStore/Memory/MemoryStore.swift"
ln -s "$root/Tests" "$scratch/Tests"
"$("$swift" build -c release --show-bin-path)/simulate" --plant Tests/Simulation/Mutants "$scratch/Sources"
cat > "$scratch/Package.swift" <<'PACKAGE'
// swift-tools-version: 6.2
import PackageDescription

let ours: [SwiftSetting] = [
    .enableUpcomingFeature("ExistentialAny"), .enableUpcomingFeature("MemberImportVisibility"),
    .enableUpcomingFeature("InternalImportsByDefault"),
]
let package = Package(
    name: "deferd",
    dependencies: [.package(url: "https://github.com/apple/swift-collections.git", from: "1.6.0")],
    targets: [
        .target(name: "JobModel", swiftSettings: ours),
        .target(
            name: "JobCore", dependencies: ["JobModel", .product(name: "HeapModule", package: "swift-collections")],
            swiftSettings: ours),
        .target(name: "JobStore", dependencies: ["JobModel"], swiftSettings: ours),
        .executableTarget(
            name: "simulate", dependencies: ["JobCore", "JobModel", "JobStore"], path: "Tests/Simulation",
            exclude: ["Mutants", "mutants.sh", "seeds.txt"], swiftSettings: ours),
    ])
PACKAGE
"$swift" build -c release --package-path "$scratch" --scratch-path "$scratch/build" --product simulate
simulate=$scratch/build/release/simulate
survivors=0
for file in Tests/Simulation/Mutants/*.mutant; do
    name=$(basename "$file" .mutant)
    [ $# -eq 0 ] || case " $* " in *" $name "*) ;; *) continue ;; esac
    if found=$(DEFERD_MUTANT=$name "$simulate" --seeds "${SEEDS:-150}" --hours "${HOURS:-4}" --stop | grep FAILED); then
        echo "$name: $(echo "$found" | head -1 | sed 's/; trace.*//')"
    else
        echo "$name: SURVIVED"
        survivors=$((survivors + 1))
    fi
done
[ "$survivors" -eq 0 ]
