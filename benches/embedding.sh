#!/bin/sh
# What embedding the recorder (default-features = false, macros) adds to a program: bytes of the stripped release binary, and the time
# of a clean build. Prints a table. Needs cargo and strip; works in a temporary folder.
set -eu
root=$(cd "$(dirname "$0")/.." && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"

cargo new --quiet --vcs none without
cargo new --quiet --vcs none with
cat > without/src/main.rs <<'RUST'
fn main() {
    println!("{}", std::env::args().count());
}
RUST
cat > with/src/main.rs <<'RUST'
use eventring::{EventPayload, EventType, global::GlobalRecorder, record};

#[derive(EventPayload)]
struct Order {
    id: u64,
    price: u64,
}

#[derive(EventType, Clone, Copy)]
#[event(content_type = 301, name = "ORDERS", recorder = ORDERS)]
#[repr(u16)]
enum OrderEvent {
    #[event(payload = Order)]
    Placed = 2,
}

static ORDERS: GlobalRecorder = GlobalRecorder::new("orders");

fn main() {
    let count = std::env::args().count();
    if let Err(error) = ORDERS.try_init::<OrderEvent>("orders") {
        println!("{error}");
    }
    record!(OrderEvent::Placed, &Order { id: count as u64, price: 2 });
    println!("{count}");
}
RUST
printf 'eventring = { path = "%s", default-features = false, features = ["macros"] }\n' "$root" >> with/Cargo.toml
# Downloads are not part of the build.
(cd with && cargo fetch --quiet)

bytes() { # folder, further arguments of cargo
    folder=$1
    shift
    (cd "$folder" && cargo build --quiet --release --target-dir "$work/target" "$@")
    strip -o "$work/stripped" "$work/target/release/$folder"
    wc -c < "$work/stripped"
}
row() { # name, further arguments of cargo
    name=$1
    shift
    without=$(bytes without "$@")
    with=$(bytes with "$@")
    rm -rf "$work/target"
    printf '%-34s %9d %9d %6d KiB\n' "$name" "$without" "$with" $(((with - without) / 1024))
}

printf '%-34s %9s %9s %10s\n' "stripped bytes" without with "added"
row "release"
row "release, lto, one codegen unit" --config profile.release.lto=true --config profile.release.codegen-units=1
row "the same, opt-level z, abort" --config profile.release.lto=true --config profile.release.codegen-units=1 \
    --config 'profile.release.opt-level="z"' --config 'profile.release.panic="abort"'

start=$(date +%s%N)
(cd with && cargo build --quiet --release --target-dir "$work/target")
echo "clean build: $((($(date +%s%N) - start) / 1000000)) ms on $(nproc) processors"
