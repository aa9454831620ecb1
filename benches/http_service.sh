#!/usr/bin/env bash
# Requests per second of examples/http_service.rs with each subscriber, against none, in paired runs: medians.
#
#   benches/http_service.sh [PAIRS] [REQUESTS]      9 pairs of 30,000 requests unless said
#
# `nothing` wants every span and log record and does nothing with them: what `tracing` alone costs the service.
set -euo pipefail
cd "$(dirname "$0")/.."
pairs=${1:-9} requests=${2:-30000}
cargo build --quiet --release --features cli --example http_service
target=$(cargo metadata --format-version 1 --no-deps | sed 's/.*"target_directory":"\([^"]*\)".*/\1/')
service=$target/release/examples/http_service
ring=bench-http-$$
figures=$(mktemp)
trap 'rm -f "$figures"' EXIT

per_second() { # SUBSCRIBER -> requests per second
    "$service" --requests "$requests" --ring "$ring" --subscriber "$1" --json 2>/dev/null |
        sed 's/.*"requests_per_second":\([0-9.]*\).*/\1/'
}
median() { sort -g | awk '{ value[NR] = $1 } END { print NR % 2 ? value[(NR + 1) / 2] : (value[NR / 2] + value[NR / 2 + 1]) / 2 }'; }

subscribers=(nothing registry recorder layer)
for _ in $(seq "$pairs"); do
    for subscriber in "${subscribers[@]}"; do
        without=$(per_second none)
        with=$(per_second "$subscriber")
        echo "$subscriber $without $with" >> "$figures"
    done
done
printf '%-10s %14s %14s %8s\n' subscriber 'requests/s' 'without' 'ratio'
for subscriber in "${subscribers[@]}"; do
    of() { awk -v of="$subscriber" '$1 == of' "$figures"; }
    printf '%-10s %14.0f %14.0f %8.3f\n' "$subscriber" "$(of | awk '{ print $3 }' | median)" \
        "$(of | awk '{ print $2 }' | median)" "$(of | awk '{ print $3 / $2 }' | median)"
done
