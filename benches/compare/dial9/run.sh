#!/usr/bin/env bash
# Runs the fault of docs/COMPARE.md with dial9, and prints what is left of it.
#
#   benches/compare/dial9/run.sh DIRECTORY
#
# The directory must not be there yet. It keeps the output.
# The program is built into $CARGO_TARGET_DIR, or into target beside this file.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
mkdir "$1"
target=${CARGO_TARGET_DIR:-$here/target}
(cd "$here" && cargo build --release --quiet)
cd "$1"
server=
clean() { [ -n "$server" ] && kill -9 "$server" 2>/dev/null || true; }
trap clean EXIT
# Writes the events of the segments in the directory $1 to $1.json.
print() { "$target/release/print" "$1"/* >"$1.json"; echo "events: $(wc -l <"$1.json")"; }
# Prints the events of the spans of request $2 in $1.json. The close of a span has only the span's number.
request() {
    local numbers
    numbers=$(grep "\"id\":\"$2\"" "$1.json" | grep -oE '"span_id":[0-9]+' | sort -u) || { echo "nothing of request $2"; return; }
    # Numbers are used again: what came before the first enter is of another span.
    grep -F "$numbers" "$1.json" | grep -E "\"id\":\"$2\"|Close" |
        sed -E 's/.*"event":"([^"]*)".*"span_id":([0-9]+).*"timestamp_ns":([0-9]+).*/\3 \1 span \2/' |
        awk '/Enter/ { entered[$4] = 1 } entered[$4] { print } /Close/ { delete entered[$4] }'
}
mkdir segments dumped left
"$target/release/server" "$PWD/segments" & server=$!
sleep 9
echo "── the dump"
ls -l segments
for file in segments/*.gz; do gunzip -c "$file" >"dumped/$(basename "$file" .gz)"; done
print dumped
request dumped 40000
request dumped 20000
echo "── after SIGKILL"
awk '{ print "killed at", $1 }' /proc/uptime
kill -9 "$server"; wait "$server" 2>/dev/null || true; server=
ls -l segments
cp segments/*.bin segments/*.active left
print left
grep -oE '"timestamp_ns":[0-9]+' left.json | sort -t: -k2n | sed -n '1p;$p'
