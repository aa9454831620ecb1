#!/usr/bin/env bash
# What LTTng's consumer costs for the load of `pipeline`. Prints one JSON object, or says on stderr why it cannot.
#
#   crates/export/benches/lttng.sh EVENTS EVENTS_PER_SECOND
#
# `lttng_cpu_ns` is the consumers' processor time for each event, `lttng_bytes` what an event takes on disk, and
# `lttng_lost` the number of events that were discarded. The packages are installed if this user is root.
set -euo pipefail
here=$(cd "$(dirname "$0")/lttng" && pwd)
events=$1 per_second=$2
cannot() { echo "lttng.sh: $1" >&2; exit 3; }
if ! command -v lttng >/dev/null || ! [ -e /usr/include/lttng/tracepoint.h ]; then
    [ "$(id -u)" = 0 ] || cannot "LTTng is not installed: lttng-tools liblttng-ust-dev"
    { apt-get update -qq && apt-get install -y -qq lttng-tools liblttng-ust-dev gcc; } >&2 || cannot "LTTng cannot be installed"
fi
command -v gcc >/dev/null || cannot "there is no gcc"

work=$(mktemp -d)
# A session daemon of our own, so that nobody else's sessions are touched.
export LTTNG_HOME=$work HOME=$work
shm_before=$(ls /dev/shm)
clean() {
    lttng destroy bench >/dev/null 2>&1 || true
    [ -e "$work/sessiond.pid" ] && kill "$(cat "$work/sessiond.pid")" 2>/dev/null || true
    sleep 0.5
    for file in /dev/shm/lttng-ust-wait-*; do
        [ -e "$file" ] && ! grep -qxF "$(basename "$file")" <<<"$shm_before" && rm -f "$file"
    done
    rm -rf "$work"
}
trap clean EXIT

gcc -O2 -I"$here" -o "$work/load" "$here/load.c" -llttng-ust -ldl >&2 || cannot "the load cannot be compiled"
lttng-sessiond --daemonize --pidfile "$work/sessiond.pid" >&2
sleep 1
lttng create bench --output="$work/trace" >&2
lttng enable-channel -u -s bench --subbuf-size=16M --num-subbuf=16 channel >&2
lttng enable-event -u -s bench -c channel 'bench:*' >&2
lttng start bench >&2

consumers() { pgrep -f lttng-consumerd -P "$(cat "$work/sessiond.pid")" || pgrep -f lttng-consumerd; }
ticks() {
    local sum=0 pid
    for pid in $(consumers); do
        # Fields 14 and 15 follow the name, which is in parentheses.
        set -- $(sed 's/.*) //' "/proc/$pid/stat")
        sum=$((sum + ${12} + ${13}))
    done
    echo "$sum"
}
before=$(ticks)
"$work/load" "$events" "$per_second"
sleep 1
stopped=$(lttng stop bench 2>&1)
sleep 1
after=$(ticks)
lost=$(grep -oE '[0-9]+ events? (were )?(discarded|lost)' <<<"$stopped" | grep -oE '^[0-9]+' | head -1 || true)
bytes=$(du -sb "$work/trace" | cut -f1)
hertz=$(getconf CLK_TCK)
awk -v t=$((after - before)) -v hz="$hertz" -v n="$events" -v b="$bytes" -v l="${lost:-0}" 'BEGIN {
    printf "{\"lttng_cpu_ns\": %.1f, \"lttng_bytes\": %.1f, \"lttng_lost\": %d}\n", t / hz * 1e9 / n, b / n, l }'
