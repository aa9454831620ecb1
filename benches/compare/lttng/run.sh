#!/usr/bin/env bash
# Runs the fault of docs/COMPARE.md with LTTng, and prints what is left of it.
#
#   benches/compare/lttng/run.sh DIRECTORY
#
# The directory must not be there yet. It keeps the output.
# Needs lttng-tools, liblttng-ust-dev, babeltrace2 and gcc. The session daemon is one of our own.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
mkdir "$1" && cd "$1"
export LTTNG_HOME=$PWD HOME=$PWD
shm_before=$(ls /dev/shm)
server=
clean() {
    [ -n "$server" ] && kill -9 "$server" 2>/dev/null || true
    lttng destroy compare >/dev/null 2>&1 || true
    [ -e sessiond.pid ] && kill "$(cat sessiond.pid)" 2>/dev/null || true
    sleep 1
    for file in /dev/shm/lttng-ust-wait-*; do
        [ -e "$file" ] && ! grep -qxF "$(basename "$file")" <<<"$shm_before" && rm -f "$file"
    done
    rm -rf .lttng
}
trap clean EXIT
say() { echo "\$ $*"; "$@"; }
# Prints what the snapshot in the directory $1 has of the request $2.
request() { babeltrace2 "$1" 2>>babeltrace.txt | grep -E " id = $2[ ,]" || echo "nothing of request $2"; }

gcc -O2 -I"$here" -o server "$here/server.c" -llttng-ust -ldl -lpthread
lttng-sessiond --daemonize --pidfile "$PWD/sessiond.pid"
sleep 1
say lttng create compare --snapshot --output="$PWD/snapshots"
say lttng enable-channel -u -s compare --overwrite --subbuf-size=4M --num-subbuf=8 requests
say lttng enable-event -u -s compare -c requests 'compare:*'
say lttng add-context -u -s compare -c requests -t vpid -t vtid
say lttng start compare
say lttng add-trigger --name=slow --condition=event-rule-matches --type=user --name='compare:step_end' \
    --filter='duration_ns > 200000000' --action=snapshot-session compare --rate-policy=every:1

./server & server=$!
sleep 8
echo "── the snapshot of the trigger"
ls snapshots
first=$(ls -d snapshots/* | head -1)
du -sh "$first"
babeltrace2 "$first" 2>babeltrace.txt | sed -n '1p;$p'
echo "events: $(babeltrace2 "$first" 2>>babeltrace.txt | wc -l)"
request "$first" 40000
request "$first" 20000
echo "── after SIGKILL"
date '+killed at %T.%3N'
kill -9 "$server"; wait "$server" 2>/dev/null || true; server=
sleep 1
say lttng snapshot record -s compare
last=$(ls -dt snapshots/* | head -1)
echo "$last"
babeltrace2 "$last" 2>>babeltrace.txt | sed -n '1p;$p'
request "$last" 20000
