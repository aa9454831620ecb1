//! The cost of a watcher that waits for triggers: `eventring capture --on`, beside a program that records a million
//! span events a second.
//!
//! `cargo bench -p eventring-cli --bench watch` records in rounds, each first without and then with a watcher. The
//! watcher waits for the one slow request of a recording.
//!
//! Each round prints the watcher's memory, and how often the watcher fired. The medians follow: an event's cost to the
//! program, and the watcher's use of a processor. `-- --quick` takes half a minute. See `docs/COST.md`.

#![allow(missing_docs)]

use eventring::tracing::{PerfRecorder, RecorderSubscriber};
use serde_json::Value;
use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// The arguments of the child that records: the ring, the number of seconds.
const CHILD: &str = "EVENTRING_WATCH_CHILD";
const EVENTS_PER_SECOND: u64 = 1_000_000;
/// The events of a request: two spans with four events each, a log record.
const REQUEST_EVENTS: u64 = 9;
/// The requests that are recorded without a pause.
const BURST: u64 = 20;

fn main() {
    if let Ok(child) = std::env::var(CHILD) {
        let (ring, seconds) = child.split_once(' ').expect("two arguments");
        return record(ring, seconds.parse().expect("a number"));
    }
    let is_quick = std::env::args().any(|argument| argument == "--quick");
    let (rounds, seconds) = if is_quick { (3, 4) } else { (9, 20) };
    let directory = tempfile::tempdir_in("/dev/shm").expect("a directory for rings");
    let files = tempfile::tempdir().expect("a directory for files");
    let ring = directory.path().join("shop");
    let (mut alone, mut watched, mut processors, mut slow_down) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    for round in 0..rounds {
        alone.push(Program::begin(&ring, seconds).nanos());
        let found = watch(&ring, seconds, &files.path().join(format!("{round}-{{n}}.evc")));
        println!(
            "round {round}: alone {:.1} ns, watched {:.1} ns, {:.2} of a processor, {} to {} MiB, {} fired, {} lost",
            alone[round], found.nanos, found.processors, found.first_mib, found.last_mib, found.fired, found.lost
        );
        watched.push(found.nanos);
        slow_down.push(found.nanos / alone[round]);
        processors.push(found.processors);
    }
    println!("record_alone_ns   {:8.1}", median(&mut alone));
    println!("record_watched_ns {:8.1}", median(&mut watched));
    println!("slow_down         {:8.3}", median(&mut slow_down));
    println!("watch_processors  {:8.3}", median(&mut processors));
}

fn median(numbers: &mut [f64]) -> f64 {
    numbers.sort_by(f64::total_cmp);
    numbers[numbers.len() / 2]
}

/// The program that records, in a process of its own.
struct Program(Child);

impl Program {
    /// Starts the program, and returns when it has its ring and begins to record.
    fn begin(ring: &Path, seconds: u64) -> Self {
        let mut program = Command::new(std::env::current_exe().expect("own path"));
        program.env(CHILD, format!("{} {seconds}", ring.display())).stdin(Stdio::piped()).stdout(Stdio::piped());
        Self(program.spawn().expect("a program"))
    }

    /// Waits for the end. Returns the nanoseconds that recording one event took.
    fn nanos(mut self) -> f64 {
        let mut line = String::new();
        BufReader::new(self.0.stdout.as_mut().expect("its output")).read_line(&mut line).expect("a line");
        self.0.stdin.take().expect("its input").write_all(b"end\n").expect("a line");
        assert!(self.0.wait().expect("its end").success());
        line.trim().parse().unwrap_or_else(|error| panic!("{error}: {line}"))
    }
}

/// Records requests at [`EVENTS_PER_SECOND`]. Prints the nanoseconds that recording one event took, without the pauses.
fn record(ring: &str, seconds: u64) {
    let recorder = PerfRecorder::builder().config(ring).memory(256 << 20).build().expect("a ring");
    let subscriber = RecorderSubscriber::new(recorder);
    let requests = seconds * EVENTS_PER_SECOND / REQUEST_EVENTS / BURST * BURST;
    let (start, mut recording, mut request) = (Instant::now(), Duration::ZERO, 0);
    tracing::subscriber::with_default(subscriber, || {
        while request < requests {
            let due = Duration::from_nanos(request * REQUEST_EVENTS * 1_000_000_000 / EVENTS_PER_SECOND);
            while start.elapsed() < due {
                std::hint::spin_loop();
            }
            let begun = Instant::now();
            for id in request..request + BURST {
                let _request = tracing::info_span!("request", id).entered();
                let query = tracing::info_span!("query", table = "orders", rows = id % 100);
                query.in_scope(|| tracing::info!(item = id % 1000, "found"));
            }
            recording += begun.elapsed();
            request += BURST;
            if request == requests / 2 / BURST * BURST {
                let _slow = tracing::info_span!("request", id = 0).entered();
                std::thread::sleep(Duration::from_millis(50));
            }
        }
    });
    println!("{}", recording.as_nanos() as f64 / (requests * REQUEST_EVENTS) as f64);
    // The ring stays until the watcher has seen enough.
    std::io::stdin().read_line(&mut String::new()).expect("the end");
}

struct Watched {
    nanos: f64,
    processors: f64,
    first_mib: u64,
    last_mib: u64,
    fired: u64,
    lost: u64,
}

/// Records while a watcher waits for slow requests.
fn watch(ring: &Path, seconds: u64, output: &Path) -> Watched {
    let mut watcher = Command::new(env!("CARGO_BIN_EXE_eventring"));
    watcher.arg("capture").arg(ring).args(["--wait", "--on", "span=request dur>40ms", "--before", "1s"]);
    watcher.args(["--after", "200ms", "--memory", "64MiB", "--json", "-o"]).arg(output);
    let mut watcher = watcher.stdout(Stdio::piped()).spawn().expect("a watcher");
    std::thread::sleep(Duration::from_millis(300));
    let program = Program::begin(ring, seconds);
    // The ring is there, and what it held was read.
    std::thread::sleep(Duration::from_millis(1500));
    let (begin, nanos_before, first_mib) = (Instant::now(), cpu_nanos(&watcher), resident_mib(&watcher));
    std::thread::sleep(Duration::from_secs(seconds - 2));
    let (nanos_after, elapsed, last_mib) = (cpu_nanos(&watcher), begin.elapsed(), resident_mib(&watcher));
    let nanos = program.nanos();
    let output = BufReader::new(watcher.stdout.take().expect("its output")).lines();
    let said: Vec<String> = output.map(|line| line.expect("text")).collect();
    assert!(watcher.wait().expect("its end").success(), "{said:?}");
    let said: Value = serde_json::from_str(&said.join("\n")).expect("JSON");
    let files = said["files"].as_array().expect("files");
    Watched {
        nanos,
        processors: (nanos_after - nanos_before) as f64 / elapsed.as_nanos() as f64,
        first_mib,
        last_mib,
        fired: said["fired"].as_u64().expect("a number"),
        lost: files.iter().map(|file| file["lost"].as_u64().expect("a number")).sum(),
    }
}

/// Returns the processor time that the process has used until now.
fn cpu_nanos(process: &Child) -> u64 {
    // The first number is the time on a processor, in nanoseconds, of one thread.
    let tasks = fs::read_dir(format!("/proc/{}/task", process.id())).expect("its threads");
    let times = tasks.filter_map(|task| fs::read_to_string(task.ok()?.path().join("schedstat")).ok());
    times.map(|times| times.split(' ').next().expect("a number").parse::<u64>().expect("a number")).sum()
}

/// Returns the memory of the process in MiB, without the rings that it has mapped.
fn resident_mib(process: &Child) -> u64 {
    let status = fs::read_to_string(format!("/proc/{}/status", process.id())).expect("its status");
    let line = status.lines().find_map(|line| line.strip_prefix("RssAnon:")).expect("RssAnon");
    line.trim().trim_end_matches(" kB").parse::<u64>().expect("a number") / 1024
}
