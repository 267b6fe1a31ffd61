#!/bin/sh
# Runs each fuzzer, or the named ones, for SECONDS from the committed corpus; new inputs go below .build/fuzz.
set -eu
cd "$(dirname "$0")/../.."
seconds=$1
shift
scratch=.build/fuzz
# The limits for an input: megabytes, seconds and bytes.
bounds="-rss_limit_mb=2048 -timeout=20 -max_len=65536"
"$(dirname "$0")/package.sh" "$scratch"
for target in ${*:-lines spec calendar configuration http sources state}; do
    "${SWIFT:-swift}" build -c release --package-path "$scratch" --product "fuzz-$target"
    program=$scratch/.build/release/fuzz-$target
    mkdir -p "$scratch/corpus/$target" "$scratch/findings"
    seeds=Tests/Fuzz/Corpus/$target
    case $target in
    lines) seeds="$seeds Tests/JobProtocolTests/Fixtures/requests" ;;
    spec) seeds="$seeds Tests/JobModelTests/Fixtures/specs" ;;
    configuration) seeds="$seeds config" ;;
    sources) seeds=Tests/Fuzz/Corpus/http ;;
    esac
    log=$scratch/$target.log
    # shellcheck disable=SC2086
    if ASAN_OPTIONS=detect_leaks=0:detect_odr_violation=0 "$program" $bounds -max_total_time="$seconds" -print_final_stats=1 \
        -artifact_prefix="$scratch/findings/$target-" "$scratch/corpus/$target" $seeds </dev/null >"$log" 2>&1; then
        if grep -q 'no interesting inputs' "$log"; then
            echo "$target: the code is not built for fuzzing; see $log"
            exit 1
        fi
        echo "$target: $(sed -n 's/^stat::number_of_executed_units: *//p' "$log") inputs in $seconds s, nothing found"
    else
        grep -E 'Found:|Fatal error|ERROR:|SUMMARY:' "$log" | cut -c1-1000 || true
        finding=$(sed -n 's/.*Test unit written to //p' "$log" | tail -1)
        echo "$target: FOUND SOMETHING; the input is $finding, the log $log. This repeats it:"
        echo "  ASAN_OPTIONS=detect_leaks=0:detect_odr_violation=0 $program $finding"
        exit 1
    fi
done
