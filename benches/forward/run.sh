#!/usr/bin/env bash
# Measures `eventring forward` with the HTTP service beside it, and one message for each event beside that.
#
#   benches/forward/run.sh DIRECTORY
#
# The directory must not be there yet. It keeps the output and the files of the broker. /dev/shm needs 1 GiB. The
# programs `nats-server` and `eventring` (a release build) must be in the path, and $HTTP_SERVICE is the path of the
# example http_service, built for release.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
mkdir "$1"
target=${CARGO_TARGET_DIR:-$here/target}
(cd "$here" && cargo build --release --quiet)
cd "$1"
port=${PORT:-4399}
to=nats://127.0.0.1:$port
rings=$(mktemp -d /dev/shm/forward-XXXXXX)
nats-server --jetstream --store_dir "$PWD/store" --port "$port" --log "$PWD/broker.log" & broker=$!
trap 'kill $broker 2>/dev/null; rm -rf "$rings"' EXIT
sleep 1
cpu() { awk '{ print ($14 + $15) / 100 }' "/proc/$broker/stat"; }

echo "── the service alone"
"$HTTP_SERVICE" --requests 1000000 --ring "$rings/alone"
echo "── the service, and eventring forward"
before=$(cpu)
(TIMEFORMAT='forward: %R s, %U s of user and %S s of system time'
    time eventring forward "$rings/live" --wait --to "$to" --stream LIVE --json >forward.json 2>/dev/null) & forward=$!
sleep 0.5
"$HTTP_SERVICE" --requests 1000000 --ring "$rings/live"
wait "$forward"
cat forward.json
echo "broker: $before s of processor time before, $(cpu) s after"

echo "── the service, eventring forward and eventring receive"
eventring forward "$rings/both" --wait --to "$to" --stream BOTH --json >both.json 2>/dev/null & forward=$!
(TIMEFORMAT='receive: %R s, %U s of user and %S s of system time'
    time eventring receive "$to" --stream BOTH -o both.evc --wait --until-end --json >received.json) & receive=$!
sleep 0.5
"$HTTP_SERVICE" --requests 1000000 --ring "$rings/both"
wait "$forward" "$receive"
cat both.json received.json

echo "── spans at 1,200,000 events a second for 20 s, eventring forward and eventring receive"
eventring forward "$rings/paced" --wait --to "$to" --stream PACED --json >paced.json 2>/dev/null & forward=$!
eventring receive "$to" --stream PACED -o paced.evc --wait --until-end --json >paced_received.json & receive=$!
sleep 0.5
"$target/release/paced" "$rings/paced:256MiB" 1200000 20
wait "$forward" "$receive"
cat paced.json paced_received.json

echo "── what a ring holds, forwarded"
"$HTTP_SERVICE" --requests 40000 --ring "$rings/held:640MiB" --keep >/dev/null
(TIMEFORMAT='forward: %R s, %U s of user and %S s of system time'
    time eventring forward "$rings/held" --to "$to" --stream HELD --json)
echo "── the same, one message for each event: 0, 1,000 and 5,000 may wait for acknowledgements"
for acks in 0 1000 5000; do
    before=$(cpu)
    (TIMEFORMAT='%R s, %U s of user and %S s of system time'
        time "$target/release/message_per_event" "$to" "EACH$acks" "$acks" "$rings"/held*)
    echo "broker: $before s of processor time before, $(cpu) s after"
done
du -sh store/jetstream/*/streams/*
