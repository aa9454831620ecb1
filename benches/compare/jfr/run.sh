#!/usr/bin/env bash
# Runs the fault of docs/COMPARE.md with Java's flight recorder, and prints what is left of it.
#
#   benches/compare/jfr/run.sh DIRECTORY
#
# The directory must not be there yet. It keeps the output.
# Needs openjdk-17-jdk-headless.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
mkdir "$1" && cd "$1"
server=
clean() { [ -n "$server" ] && kill -9 "$server" 2>/dev/null || true; }
trap clean EXIT
# Starts the server with the options $2, and its repository in the directory $1.
start() {
    java -XX:FlightRecorderOptions:repository="$PWD/$1" -XX:StartFlightRecording:name=compare,maxage=1m"$2" \
        -cp classes Server & server=$!
    sleep 2
    repository=$(echo "$1"/*)
}
# Prints what the recording $1 has of the request $2.
request() { jfr print --events 'compare.*' "$1" | grep -B4 -A3 -E "id = $2\$" || echo "nothing of request $2"; }
contents() { jfr summary "$1" | grep -E 'Start|Duration|compare'; }
# Kills the server, and prints what its newest file has: as it is, or else without what follows the size in its header.
end() {
    date '+killed at %T.%3N'
    kill -9 "$server"; wait "$server" 2>/dev/null || true; server=
    local newest size
    newest=$(ls -t "$repository"/*.jfr | head -1)
    size=$((16#$(od -A n -t x1 -j 8 -N 8 "$newest" | tr -d ' ')))
    echo "$(stat -c %s "$newest") bytes, $size by the header"
    if ! jfr summary "$newest" >summary.txt; then
        jfr assemble "$repository" assembled.jfr >/dev/null
        jfr summary assembled.jfr >summary.txt || echo "assembling does not help"
        head -c "$size" "$newest" >"$1"
    else
        cp "$newest" "$1"
    fi
    contents "$1"
    jfr print --events compare.Request "$1" | grep startTime | sort | tail -1
}

javac -d classes "$here/Server.java" "$here/Watch.java"
start watched ''
java -cp classes Watch "$repository" "$server" 200 "$PWD/slow.jfr" & watch=$!
sleep 6
wait "$watch"
echo "── the dump of the watcher"
ls -l slow.jfr
contents slow.jfr
jfr print --events compare.Request slow.jfr | grep startTime | sort | sed -n '1p;$p'
request slow.jfr 40000
request slow.jfr 20000
echo "── the thread that never ends, from jcmd PID Thread.print"
jcmd "$server" Thread.print | grep -A8 '"stuck"'
echo "── after SIGKILL"
end watched.jfr
request watched.jfr 20000
for after in 3.0 3.1 3.2 3.3 3.4 3.5 3.6 3.7 3.8 3.9; do
    echo "── after SIGKILL, without the watcher"
    start "unwatched-$after" ''
    sleep "$after"
    end "unwatched-$after.jfr"
done
echo "── with a threshold of 200 ms"
start threshold ,settings="$here/compare.jfc"
sleep 4
jcmd "$server" JFR.dump name=compare filename="$PWD/threshold.jfr" >/dev/null
contents threshold.jfr
