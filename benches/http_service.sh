#!/usr/bin/env bash
# Requests per second of the example http_service with full tracing, against none.
#
#   benches/http_service.sh [ROUNDS] [REQUESTS]      200 rounds of 2,000 requests unless said
#
# In turn with the subscriber on and off, in one process; medians. `nothing` wants every span and log record and does nothing with
# them: what `tracing` alone costs the service.
set -euo pipefail
cd "$(dirname "$0")/.."
rounds=${1:-200} requests=${2:-2000}
cargo build --quiet --release -p eventring-http-service --example http_service
target=$(cargo metadata --format-version 1 --no-deps | sed 's/.*"target_directory":"\([^"]*\)".*/\1/')
# Not among the rings of the user.
EVENTRING_DIR=$(mktemp -d /dev/shm/bench-XXXXXX)
export EVENTRING_DIR
trap 'rm -rf "$EVENTRING_DIR"' EXIT
for subscriber in nothing recorder; do
    printf '%-10s' "$subscriber"
    "$target/release/examples/http_service" --subscriber "$subscriber" --ring shop --rounds "$rounds" --requests "$requests"
done
