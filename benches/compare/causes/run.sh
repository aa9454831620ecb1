#!/usr/bin/env bash
# Runs the server with planted causes of docs/COMPARE.md with perf, samply, dial9 and eventring; as root.
#
#   benches/compare/causes/run.sh DIRECTORY [plain]
#
# With `plain`, a user without rights records, with perf, dial9 and eventring; this user may only raise priorities.
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
if [ "${2:-}" = plain ]; then
    mkdir rings segments
    cp "$causes" "$target/release/print" "$(command -v eventring)" .
    chown -R 65534:65534 .
    plain() {
        setpriv --reuid=65534 --regid=65534 --clear-groups --inh-caps=+sys_nice --ambient-caps=+sys_nice \
            env EVENTRING_DIR="$PWD/rings" EVENTRING_KEEP=1 "$@"
    }
    plain perf sched record -o sched.data -- ./causes none >sched.out 2>&1 || echo "── perf sched refuses"
    plain perf record -q -F 997 -g -o perf.data -- ./causes none >perf.out
    plain perf report -i perf.data --stdio --no-children --sort comm,sym -g none 2>/dev/null | grep '%' | head
    plain ./causes "$PWD/segments" >dial9.out
    plain ./print segments/*.bin >dial9.json
    echo "── dial9: $(wc -l <dial9.json) events"
    plain ./causes eventring >eventring.out
    plain ./eventring capture rings/causes -o eventring.evc
    exec setpriv --reuid=65534 --regid=65534 --clear-groups ./eventring why eventring.evc --span request --slowest 18
fi
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
