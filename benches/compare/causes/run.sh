#!/usr/bin/env bash
# Runs the server with planted causes of docs/COMPARE.md with perf, samply, dial9 and eventring; as root.
#
#   benches/compare/causes/run.sh DIRECTORY
#
# The directory must not be there yet. It keeps the output. `perf` is Debian's linux-perf; `samply` and `eventring` are those in
# the path. samply records only if kernel.perf_event_paranoid is at most 1, also for root.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
mkdir "$1"
target=${CARGO_TARGET_DIR:-$here/target}
(cd "$here" && cargo build --release --quiet --features dial9)
cd "$1"
causes=$target/release/causes
perf record -q -F 997 -g -o perf.data -- "$causes" none >perf.out
perf report -i perf.data --stdio --no-children --sort comm,sym -g none 2>/dev/null | grep '%' | head
perf sched record -o sched.data -- "$causes" none >sched.out
echo "── waits, delays and runs of more than 30 ms: perf sched timehist"
perf sched timehist -i sched.data --state 2>/dev/null | awk '/tokio-rt-worker/ && ($4 > 30 || $5 > 30 || $6 > 30)'
samply record -s --cswitch-markers --unstable-presymbolicate -o samply.json.gz -- "$causes" none >samply.out
mkdir segments
"$causes" "$PWD/segments" >dial9.out
"$target/release/print" segments/*.bin >dial9.json
echo "── dial9: $(wc -l <dial9.json) events"
eventring profile -o eventring.evc --sched --syscalls -- "$causes" eventring >eventring.out
eventring why eventring.evc --span request --slowest 18
