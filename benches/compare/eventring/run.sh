#!/usr/bin/env bash
# Runs the fault of docs/COMPARE.md with eventring, and prints what is left of it.
#
#   benches/compare/eventring/run.sh DIRECTORY
#
# The directory must not be there yet. It keeps the output. /dev/shm needs 1 GiB.
# The program `eventring` must be in the path. The server is built into $CARGO_TARGET_DIR, or into target beside this
# file.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
mkdir "$1"
target=${CARGO_TARGET_DIR:-$here/target}
(cd "$here" && cargo build --release --quiet)
cd "$1"
EVENTRING_DIR=$(mktemp -d /dev/shm/compare-XXXXXX)
export EVENTRING_DIR
server='' capture=''
clean() {
    for child in $server $capture; do kill -9 "$child" 2>/dev/null || true; done
    rm -rf "$EVENTRING_DIR"
}
trap clean EXIT
say() { echo "\$ $*"; "$@"; }
# Prints what the capture $1 has of the request $2.
request() { eventring watch "$1" 2>/dev/null | grep -F "id=$2" || echo "nothing of request $2"; }
# Starts a server, whose rings have the name and size $1.
start() { EVENTRING_PERF=$1 "$target/release/server" & server=$!; }
end() { date '+killed at %T.%3N' -u; kill -9 "$server"; wait "$server" 2>/dev/null || true; server=; }
# Prints what the watcher left in the directory $1.
files() {
    ls -l "$1"
    for file in "$1"/*.evc; do
        say cat "$file.json"
        say eventring summary "$file"
        say eventring open "$file" --utc
        request "$file" 20000
        request "$file" 40000
        say eventring watch "$file" 2>/dev/null | sed -n '2p;$p'
    done
}

echo "── a watcher, and three conditions"
start compare:256MiB
sleep 1
mkdir three
eventring capture compare --on 'span=step dur>200ms' --on 'open>2s' --on death --before 10s --after 2s \
    -o 'three/slow-{n}-{span}.evc' --json >three.json & capture=$!
sleep 7
say eventring open compare --utc
end
say eventring open compare --utc
wait "$capture" || echo "exit code $?"
capture=
cat three.json
files three
rm -rf "${EVENTRING_DIR:?}"/*

for size in compare:256MiB compare; do
    echo "── a watcher, and one condition, rings of $size"
    start "$size"
    sleep 1
    one=one-${size/:/-}
    mkdir "$one"
    eventring capture compare --on 'span=step dur>200ms or open>2s or death' --before 10s --after 2s \
        -o "$one/slow-{n}-{span}.evc" --json >"$one.json" & capture=$!
    sleep 7
    end
    wait "$capture" || echo "exit code $?"
    capture=
    cat "$one.json"
    files "$one"
    rm -rf "${EVENTRING_DIR:?}"/*
done

for size in compare compare:256MiB compare:1GiB; do
    echo "── no watcher, rings of $size"
    start "$size"
    sleep 8
    end
    du -sh "$EVENTRING_DIR"
    say eventring open compare --utc
    say eventring capture compare -o "left-${size/:/-}.evc"
    say eventring summary "left-${size/:/-}.evc"
    request "left-${size/:/-}.evc" 20000
    request "left-${size/:/-}.evc" 40000
    rm -rf "${EVENTRING_DIR:?}"/*
done
