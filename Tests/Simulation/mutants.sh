#!/bin/sh
# Puts every defect of Mutants into a copy of the core, builds that once, and runs the simulator with each of them alive.
# Prints for each the seed and the invariant that find it; exits 1 where one survives. Arguments name those to try.
# PARALLEL=n of them run at a time; each tries SEEDS seeds of HOURS simulated hours, after those that failed once.
set -eu
cd "$(dirname "$0")/../.."
mutants=$PWD/Tests/Simulation/Mutants
scratch=$PWD/.build/mutants
swift=${SWIFT:-swift}
if [ "${1:-}" = --try ]; then
    found=$(DEFERD_MUTANT=$2 "$scratch/.build/release/simulate" --seeds "${SEEDS:-300}" --hours "${HOURS:-4}" --stop \
        Tests/Simulation/seeds.txt | grep FAILED | head -1 | sed 's/; trace.*//; s/; repeat.*//') || true
    echo "$2: ${found:-SURVIVED}"
    [ -n "$found" ]
    exit
fi
Tests/Simulation/package.sh "$scratch" copy
if [ ! -x "$scratch/plant" ] || [ Tests/Simulation/Mutants.swift -nt "$scratch/plant" ]; then
    "$swift" build -c release --package-path "$scratch" --product simulate
    cp "$scratch/.build/release/simulate" "$scratch/plant"
fi
"$scratch/plant" --plant "$mutants" "$scratch/Sources"
"$swift" build -c release --package-path "$scratch" --product simulate
names=$*
[ -n "$names" ] || names=$(cd "$mutants" && ls | sed -n 's/\.mutant$//p')
echo "$names" | tr ' ' '\n' | xargs -P "${PARALLEL:-2}" -n 1 "$0" --try
