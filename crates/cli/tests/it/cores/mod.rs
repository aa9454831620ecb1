//! Core files: the rings of a program that has crashed, from memory of each kind, hold what the program has told.

mod gdb;
mod hostile;
mod huge;

use crate::fixtures::*;
use crate::shop::{Order, Shop};
use eventring_stress::skipped;
use rustix::process::{Resource, Rlimit, setrlimit};
use std::os::unix::process::CommandExt as _;
use std::os::unix::process::ExitStatusExt as _;

const TEST: &str = test_name!("a_core_file_holds_exactly_what_the_program_has_told");

/// Where the rings of the program are.
const MEMORIES: [&str; 4] = ["memfd", "unlinked", "named", "directory"];
/// How the program ends: by itself, or by a signal of its parent.
const ENDS: [&str; 6] = ["segv", "abort", "quit", "xcpu", "sys", "trap"];

/// Records as many orders and spans as the place says, tells it, and crashes.
fn victim(memory: &str, end: &str, events: u64) {
    std::env::set_current_dir(child::place()).unwrap();
    // A shell that starts the tests in its background makes them ignore SIGQUIT.
    for signal in [libc::SIGQUIT, libc::SIGXCPU, libc::SIGSYS, libc::SIGTRAP] {
        // SAFETY: the default action needs no handler.
        unsafe { libc::signal(signal, libc::SIG_DFL) };
    }
    let unlimited = Rlimit { current: None, maximum: None };
    setrlimit(Resource::Core, unlimited).unwrap();
    let is_in_cores = ["named", "directory", "huge", "huge-unlinked"].contains(&memory);
    let rings = if memory.starts_with("huge") { child::place().join("huge") } else { child::place() };
    let spans = PerfRecorder::builder().shifts(15, 21).shards(2).prefault(false).in_core_files(is_in_cores);
    let orders = Recorder::builder(ContentDescription::from_event_type::<Shop>()).shifts(15, 21).prefault(false);
    let orders = orders.in_core_files(is_in_cores);
    let (spans, orders) = match memory {
        "memfd" => (spans.anonymous(), orders.anonymous()),
        // Names without `/` are in EVENTRING_DIR.
        "directory" => (spans.config("spans"), orders.config("orders")),
        _ => (spans.config(rings.join("spans")), orders.config(rings.join("orders"))),
    };
    let (spans, orders) = (spans.all_shards_at_build(true).build().unwrap(), orders.build().unwrap());
    tracing::subscriber::set_global_default(RecorderSubscriber::new(spans)).unwrap();
    if memory.ends_with("unlinked") {
        for name in ["spans", "spans.1", "orders"] {
            std::fs::remove_file(rings.join(name)).unwrap();
        }
    }
    let crash = tracing::info_span!("crash", events).entered();
    for id in 0..events {
        record!(orders => Shop::OrderPlaced, &Order { id });
        tracing::info_span!("order", id).in_scope(|| tracing::info!(id, "placed"));
    }
    say(events);
    match end {
        // SAFETY: the access kills the process; this is its purpose.
        "segv" => unsafe { std::ptr::without_provenance_mut::<u8>(8).write_volatile(1) },
        "abort" => std::process::abort(),
        _ => {
            wait_for_parent();
            // The parent closes the pipe after it has sent the signal, which may be on its way.
            std::thread::sleep(std::time::Duration::from_secs(10));
        }
    }
    drop(crash);
}

/// Starts the program in a directory, and waits until it has crashed. Returns the core file and what it has told, or
/// `None` if this system writes no core files into the working directory.
pub fn crash(directory: &Path, memory: &str, end: &str, events: u64) -> Option<(PathBuf, u64)> {
    let pattern = std::fs::read_to_string("/proc/sys/kernel/core_pattern").unwrap();
    if pattern.starts_with('|') || pattern.contains('/') {
        skipped(format_args!("core files do not go into the working directory, but to {}", pattern.trim()));
        return None;
    }
    let mut command = play(TEST, &format!("{memory} {end} {events}"), directory);
    command.env("EVENTRING_DIR", directory).process_group(0);
    let mut talk = Talk::with(command);
    let told = talk.hear().parse().unwrap();
    let (signal, number) = match end {
        "segv" => (None, 11),
        "abort" => (None, 6),
        "quit" => (Some(Signal::QUIT), 3),
        "xcpu" => (Some(Signal::XCPU), 24),
        "sys" => (Some(Signal::SYS), 31),
        _ => (Some(Signal::TRAP), 5),
    };
    if let Some(signal) = signal {
        kill_process(Pid::from_child(&talk.child), signal).unwrap();
    }
    let status = talk.child.wait().unwrap();
    assert_eq!((status.signal(), status.core_dumped()), (Some(number), true), "{memory} {end}");
    let files = std::fs::read_dir(directory).unwrap().flatten().map(|file| file.path());
    let is_core = |path: &PathBuf| path.file_name().unwrap().to_str().unwrap().starts_with("core");
    Some((files.into_iter().find(is_core).expect("the system has said that it wrote a core file"), told))
}

fn numbers<'l>(lines: impl Iterator<Item = &'l Value>, field: &str) -> Vec<u64> {
    lines.map(|line| line.pointer(field).and_then(Value::as_u64).unwrap_or_else(|| panic!("{field}: {line}"))).collect()
}

/// Checks that the capture of a core file has these orders and spans, and no others.
fn check(capture: &Path, events: u64) {
    let lines = exported(capture);
    let named = |name: &'static str| lines.iter().filter(move |line| line["name"] == name);
    let orders = numbers(named("OrderPlaced").chain(named("ORDER_PLACED")), "/payload/id");
    assert!(orders.into_iter().eq(0..events), "orders");
    assert!(numbers(named("order"), "/fields/id").into_iter().eq(0..events), "spans");
    assert!(named("order").all(|span| span["open"] != true));
    let crashes: Vec<_> = named("crash").collect();
    assert!(crashes.len() == 1 && crashes[0]["open"] == true, "{crashes:?}");
    let placed = lines.iter().filter(|line| line.pointer("/fields/message").is_some_and(|text| text == "placed"));
    assert!(numbers(placed, "/fields/id").into_iter().eq(0..events), "log records");
}

/// The test of all kinds of memory and all ends, or as many cores as EVENTRING_CORES says.
#[test]
fn a_core_file_holds_exactly_what_the_program_has_told() {
    if let Some(part) = part() {
        let [memory, end, events] = part.split(' ').collect::<Vec<_>>().try_into().unwrap();
        return victim(memory, end, events.parse().unwrap());
    }
    let cores = std::env::var("EVENTRING_CORES").map_or(8, |cores| cores.parse().unwrap());
    let mut good = 0;
    for number in 0..cores {
        let (memory, end) = (MEMORIES[number % MEMORIES.len()], ENDS[number / MEMORIES.len() % ENDS.len()]);
        let directory = directory();
        let events = 1 + (number as u64 * 7919) % 2500;
        let Some((core, told)) = crash(directory.path(), memory, end, events) else { return };
        let capture = place(&directory, "core.evc");
        let answer = run!("core", &core, "-o", &capture, "--json").json();
        assert_eq!(told, events);
        check(&capture, told);
        assert_eq!((answer["rings"].list().len(), &answer["lost"]), (3, &0.into()), "{memory}: {answer}");
        assert_eq!((&answer["open_spans"], &answer["died"]), (&1.into(), &true.into()), "{answer}");
        assert!(answer["problems"] == Value::Array(Vec::new()) && answer["not_in_core"] == Value::Array(Vec::new()));
        let signal = ["SIGSEGV", "SIGABRT", "SIGQUIT", "SIGXCPU", "SIGSYS", "SIGTRAP"];
        let at = ENDS.iter().position(|known| *known == end).unwrap();
        assert_eq!(answer["crash"]["signal_name"], signal[at], "{answer}");
        assert!(answer["crash"]["thread"].as_u64() >= answer["crash"]["pid"].as_u64(), "{answer}");
        good += 1;
    }
    eprintln!("{good} of {cores} core files hold what the program has told");
}

#[test]
fn the_answer_names_the_crash_and_the_open_spans_and_rings_that_are_not_there() {
    let directory = directory();
    let Some((core, _)) = crash(directory.path(), "memfd", "segv", 3) else { return };
    let capture = place(&directory, "core.evc");
    let answer = run!("core", &core, "-o", &capture).ends(0);
    let object = run!("core", &core, "-o", &capture, "--force", "--json").json();
    crate::ask::schemas::check(&[("core", object)]);
    assert!(answer.err.contains("killed by signal 11 (SIGSEGV) in thread "), "{answer:?}");
    assert!(
        answer.err.contains(" from 3 rings in ")
            && answer.err.contains("(what the core file holds)")
            && answer.out.contains("crash {events=3}"),
        "{answer:?}"
    );
    let again = run!("core", &core, "-o", &capture);
    assert!(again.code == Some(14) && again.err.lines().count() == 1, "{again:?}");
    let onto_itself = run!("core", &core, "-o", &core, "--force");
    assert!(
        onto_itself.code == Some(14)
            && onto_itself.err.contains("it is a file that is read, which is not written over"),
        "{onto_itself:?}"
    );
    // A file that is cut says what it has lost: a part of a ring, whole rings, all rings.
    let bytes = std::fs::read(&core).unwrap();
    let cut_at = |length: usize| {
        let cut = place(&directory, "cut");
        std::fs::write(&cut, &bytes[..length]).unwrap();
        let answer = run!("core", &cut, "-o", &capture, "--force");
        assert!(answer.code == Some(6) && answer.err.contains("the core file is cut: "), "{length}: {answer:?}");
        answer.err
    };
    let last = cut_at(bytes.len() - 8192);
    assert!(last.contains("cut: 8 KiB of memory are missing at its end; see"), "{last}");
    // The rings' headers begin with their magic.
    let rings: Vec<usize> = (0..bytes.len()).step_by(4096).filter(|at| bytes[*at..].starts_with(b"RING01")).collect();
    let with_one = cut_at(rings[1]);
    assert!(with_one.contains(" from 1 ring in ") && with_one.contains(", and with it /memfd:"), "{with_one}");
    let without = cut_at(rings[0]);
    assert!(without.contains("holds no ring") && without.contains(", and with it /memfd:"), "{without}");
    assert_eq!(without.lines().count(), 1, "{without}");
}

#[test]
fn events_whose_payload_was_cut_off_a_core_file_are_lost_and_not_invented() {
    const EVENTS: u64 = 2000;
    let directory = directory();
    let Some((core, _)) = crash(directory.path(), "memfd", "segv", EVENTS) else { return };
    let (cut, capture) = (place(&directory, "cut"), place(&directory, "core.evc"));
    let bytes = std::fs::read(&core).unwrap();
    let rings = (0..bytes.len()).step_by(4096).filter(|at| bytes[*at..].starts_with(b"RING01"));
    let (mut with, mut without) = (0, 0);
    for ring in rings {
        // Two pages of payloads are left: the header and the descriptors before them take 2 MiB each.
        let Some(left) = bytes.get(..ring + (4 << 20) + 2 * 4096 + 100) else { continue };
        std::fs::write(&cut, left).unwrap();
        let answer = run!("core", &cut, "-o", &capture, "--force").ends(6);
        let lines = run!("watch", &capture, "--json").json_lines();
        let orders: Vec<&Value> = lines.iter().filter(|line| line["name"] == "ORDER_PLACED").collect();
        assert!(orders.is_empty() || orders.len() as u64 == EVENTS, "{}", orders.len());
        let (whole, lost): (Vec<&Value>, Vec<&Value>) =
            orders.into_iter().partition(|line| line.pointer("/payload/id").is_some());
        // Every payload is the number of its order.
        assert!(whole.iter().all(|line| line["payload"]["id"].number() + 1 == line["seqno"]), "{whole:?}");
        let are_told = answer.err.contains(" events have lost their payload");
        assert!(lost.is_empty() || are_told, "{answer:?}");
        (with, without) = (with + whole.len(), without + lost.len());
    }
    assert!(with > 0 && without > 0, "{with} {without}");
}

#[test]
fn rings_with_a_name_are_left_out_of_a_core_file_without_the_option_and_the_answer_says_how_to_change_that() {
    let directory = directory();
    let Some((core, _)) = crash(directory.path(), "left-out", "abort", 3) else { return };
    let capture = place(&directory, "core.evc");
    let answer = run!("core", &core, "-o", &capture);
    assert!(answer.code == Some(3) && answer.err.lines().count() == 1, "{answer:?}");
    for words in ["holds no ring", "EVENTRING_CORE=1", "in_core_files(true)"] {
        assert!(answer.err.contains(words), "{answer:?}");
    }
    for ring in ["orders", "spans", "spans.1"] {
        let path = directory.path().join(ring);
        let is_named = answer.err.split([' ', ',']).any(|word| Path::new(word) == path);
        assert!(is_named, "{ring}: {answer:?}");
    }
    assert!(!capture.exists());
}
