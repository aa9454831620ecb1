#!/bin/sh
# What embedding the recorder (default-features = false, macros) adds to a program: bytes of the stripped release binary, and the time
# of a clean build. Four tables: the program has nothing else; it is a small service, which has what every service has; the recorder of spans
# (default-features = false, tracing) in a program that uses `tracing`; and, to compare, what making one file as carefully adds to an empty program
# without any recorder. Needs cargo and strip; works in a temporary folder.
set -eu
root=$(cd "$(dirname "$0")/.." && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"

for program in without with service service-with traced traced-with file; do
    cargo new --quiet --vcs none "$program"
done

# A program that has nothing.
cat > without/src/main.rs <<'RUST'
fn main() {
    println!("{}", std::env::args().count());
}
RUST

# What records: appended to a program's `main.rs`.
cat > recording.rs <<'RUST'
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

fn start() {
    if let Err(error) = ORDERS.try_init::<OrderEvent>("orders") {
        println!("{error}");
    }
}

fn placed(id: u64) {
    record!(OrderEvent::Placed, &Order { id, price: 2 });
}
RUST

cat > with/src/main.rs <<'RUST'
fn main() {
    let count = std::env::args().count();
    start();
    placed(count as u64);
    println!("{count}");
}
RUST
cat recording.rs >> with/src/main.rs

# What every service does with the standard library: files, threads, locks, channels, maps, times, errors.
cat > service/src/main.rs <<'RUST'
use std::collections::{BTreeMap, HashMap};
use std::io::{BufRead, BufReader, Write};
use std::sync::{Arc, Mutex, mpsc};
use std::{error, fs, net, path, thread, time};

fn main() -> Result<(), Box<dyn error::Error>> {
    start();
    let directory = path::PathBuf::from(std::env::args().nth(1).unwrap_or_default()).join("state");
    fs::create_dir_all(&directory)?;
    let settings: HashMap<String, String> = fs::read_to_string(directory.join("settings"))?
        .lines()
        .filter_map(|line| line.split_once('=').map(|(name, value)| (name.trim().into(), value.trim().into())))
        .collect();
    let port: u16 = settings.get("port").ok_or("no port")?.parse()?;
    let share: f64 = settings.get("share").ok_or("no share")?.parse()?;
    let known = Arc::new(Mutex::new(BTreeMap::<u64, (String, time::SystemTime)>::new()));
    let (sender, receiver) = mpsc::channel::<u64>();
    let writer = thread::Builder::new().name("writer".into()).spawn({
        let known = Arc::clone(&known);
        move || -> std::io::Result<()> {
            for id in receiver {
                placed(id);
                let file = directory.join(format!("{id:08x}.~{}", std::process::id()));
                let mut out = fs::OpenOptions::new().create_new(true).write(true).open(&file)?;
                writeln!(out, "{:?} {share:.3}", known.lock().unwrap().get(&id))?;
                fs::rename(&file, file.with_extension("order"))?;
            }
            for entry in fs::read_dir(&directory)? {
                println!("{} {}", entry.as_ref().unwrap().path().display(), entry?.metadata()?.len());
            }
            Ok(())
        }
    })?;
    for stream in net::TcpListener::bind(("127.0.0.1", port))?.incoming() {
        let mut line = String::new();
        BufReader::new(stream?).read_line(&mut line)?;
        let mut fields: Vec<&str> = line.split_whitespace().collect();
        fields.sort_unstable();
        let id = fields.first().ok_or("nothing")?.parse()?;
        known.lock().unwrap().insert(id, (fields.join(" "), time::SystemTime::now()));
        sender.send(id)?;
    }
    drop(sender);
    writer.join().unwrap()?;
    Ok(())
}
RUST
cp service/src/main.rs service-with/src/main.rs
cat recording.rs >> service-with/src/main.rs
printf 'fn start() {}\nfn placed(id: u64) { println!("{id}"); }\n' >> service/src/main.rs

# What uses `tracing`; with a recorder, its `start` begins the recording.
cat > traced/src/main.rs <<'RUST'
fn main() {
    start();
    let count = std::env::args().count();
    tracing::info_span!("request", count).in_scope(|| tracing::info!(count, "hello"));
    println!("{count}");
}
RUST
cp traced/src/main.rs traced-with/src/main.rs
echo 'fn start() {}' >> traced/src/main.rs
cat >> traced-with/src/main.rs <<'RUST'

fn start() {
    if let Err(error) = eventring::tracing::try_init("traced") {
        println!("{error}");
    }
}
RUST

# No recorder: only a file that is made as a ring's is (temporary name, lock, memory, mapping, final name), with one message.
cat > file/src/main.rs <<'RUST'
use rustix::fs::{CWD, FallocateFlags, FlockOperation, RenameFlags, fallocate, flock, renameat_with};
use rustix::mm::{MapFlags, ProtFlags, mmap};
use std::{fmt, fs, io, path};

struct Failed<'a>(&'a str, &'a path::Path, io::Error);

impl fmt::Display for Failed<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "cannot {} {}: {}", self.0, self.1.display(), self.2)
    }
}

fn make(path: &path::Path) -> Result<(), Failed<'_>> {
    let failed = |operation| move |error: io::Error| Failed(operation, path, error);
    let temporary = path.with_extension(format!("~{}", std::process::id()));
    fs::create_dir_all(path.parent().unwrap_or(path)).map_err(failed("make the directory of"))?;
    let options = fs::OpenOptions::new().read(true).write(true).create_new(true).open(&temporary);
    let file = options.map_err(failed("make"))?;
    flock(&file, FlockOperation::NonBlockingLockExclusive).map_err(|e| failed("lock")(e.into()))?;
    fallocate(&file, FallocateFlags::empty(), 0, 1 << 20).map_err(|e| failed("allocate")(e.into()))?;
    // SAFETY: a fresh mapping at an address of the kernel's choice, which nobody touches.
    unsafe { mmap(std::ptr::null_mut(), 1 << 20, ProtFlags::READ, MapFlags::SHARED, &file, 0) }
        .map_err(|e| failed("map")(e.into()))?;
    renameat_with(CWD, &temporary, CWD, path, RenameFlags::NOREPLACE).map_err(|e| failed("publish")(e.into()))
}

fn main() {
    let count = std::env::args().count();
    if let Err(error) = make(path::Path::new("/dev/shm/event-rings/orders")) {
        println!("{error}");
    }
    println!("{count}");
}
RUST
for program in with service-with; do
    printf 'eventring = { path = "%s", default-features = false, features = ["macros"] }\n' "$root" >> "$program/Cargo.toml"
done
for program in traced traced-with; do
    echo 'tracing = { version = "0.1", default-features = false, features = ["std"] }' >> "$program/Cargo.toml"
done
printf 'eventring = { path = "%s", default-features = false, features = ["tracing"] }\n' "$root" >> traced-with/Cargo.toml
echo 'rustix = { version = "1.1", features = ["fs", "mm"] }' >> file/Cargo.toml
# Downloads are not part of the build.
for program in with service-with traced traced-with file; do
    (cd "$program" && cargo fetch --quiet)
done

bytes() { # folder, further arguments of cargo
    folder=$1
    shift
    (cd "$folder" && cargo build --quiet --release --target-dir "$work/target" "$@")
    strip -o "$work/stripped" "$work/target/release/$folder"
    wc -c < "$work/stripped"
}
row() { # name, program without, program with, further arguments of cargo
    name=$1 base=$2 embedding=$3
    shift 3
    without=$(bytes "$base" "$@")
    with=$(bytes "$embedding" "$@")
    printf '%-34s %9d %9d %6d KiB\n' "$name" "$without" "$with" $(((with - without) / 1024))
}
rows() { # title, programs
    printf '%-34s %9s %9s %10s\n' "$1" without with "added"
    shift
    row "release" "$@"
    row "release, panic = abort" "$@" --config 'profile.release.panic="abort"'
    row "release, lto, one codegen unit" "$@" --config profile.release.lto=true --config profile.release.codegen-units=1
    row "the same, opt-level z, abort" "$@" --config profile.release.lto=true --config profile.release.codegen-units=1 \
        --config 'profile.release.opt-level="z"' --config 'profile.release.panic="abort"'
}

rows "a recorder in an empty program" without with
rows "a recorder in a small service" service service-with
rows "a recorder of spans" traced traced-with
rows "no recorder: a file, in an empty one" without file
rm -rf "$work/target"

start=$(date +%s%N)
(cd with && cargo build --quiet --release --target-dir "$work/target")
echo "clean build: $((($(date +%s%N) - start) / 1000000)) ms on $(nproc) processors"
