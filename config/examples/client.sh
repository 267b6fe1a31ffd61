#!/bin/sh
# Downloads a URL with deferd: client.sh URL PATH. Shows progress, and prints the size and the digest of the file.
set -eu
url=$1 path=$2

# Once the id is printed, the job is on disk: it goes on if this script ends.
job=$(deferctl download --detach --exists replace --label client.sh --to "$path" "$url")
trap 'echo "The job goes on; come back with: deferctl watch $job" >&2' INT

# Progress goes to standard error; the exit status is 0 if the job succeeded, 1 if it failed, 2 if it was cancelled.
deferctl watch "$job" || exit

# The result is JSON.
deferctl result "$job" | grep -oE '"(size|sha256)": *"?[0-9a-f]+'
