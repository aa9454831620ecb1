//! The delay of a recording thread while a thousand clients flood the server of its process.
//!
//! `cargo bench -p eventring-benches --bench control_flood` records for 30 seconds, or 6 with `-- --quick`. Seconds
//! with and without the flood take turns. For both, the benchmark prints percentiles of the time of one event (50, 99
//! and 99.9).

#![allow(missing_docs)]

use eventring::control::{Process, Server, ServerAddress};
use eventring::recorder::{ContentDescription, Recorder};
use std::io::{BufRead as _, Write as _};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// The address of the server, for the child that floods it.
const FLOODS: &str = "EVENTRING_FLOODS";
const CLIENTS: usize = 1000;

fn main() {
    if let Ok(address) = std::env::var(FLOODS) {
        return flood(&ServerAddress::new(address));
    }
    let rounds = if std::env::args().any(|argument| argument == "--quick") { 3 } else { 15 };
    let server = Server::builder().abstract_name(format!("flood-{}", std::process::id())).start().expect("a server");
    let recorder = Recorder::builder(ContentDescription::new(300, "LOAD")).anonymous().build().expect("a ring");
    let (mut alone, mut flooded) = (Vec::new(), Vec::new());
    record(&recorder, &mut Vec::new());
    for _ in 0..rounds {
        record(&recorder, &mut alone);
        let mut child = begin_flood(&server);
        record(&recorder, &mut flooded);
        child.kill().expect("the flood");
        child.wait().expect("the flood");
    }
    let [alone, flooded] = [alone, flooded].map(percentiles);
    println!("                        p50      p99    p99.9");
    for (name, [p50, p99, p999]) in [("alone", alone), ("flooded", flooded)] {
        println!("{name:<20} {p50:>6} {p99:>8} {p999:>8}");
    }
    println!("p99 flooded / alone: {:.3}", f64::from(flooded[1]) / f64::from(alone[1]));
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let memory = status.lines().find(|line| line.starts_with("VmHWM")).unwrap_or_default();
    println!("memory of the program: {memory}");
}

/// Records for a second, and keeps the nanoseconds of each hundredth event.
fn record(recorder: &Recorder, nanos: &mut Vec<u32>) {
    let until = Instant::now() + Duration::from_secs(1);
    let mut now = Instant::now();
    while now < until {
        for _ in 0..100 {
            recorder.record(2, [0; 4], &[7; 82]);
        }
        let start = Instant::now();
        recorder.record(2, [0; 4], &[7; 82]);
        now = Instant::now();
        nanos.push(u32::try_from((now - start).as_nanos()).unwrap_or(u32::MAX));
    }
}

/// Returns the 50th, the 99th and the 99.9th percentile.
fn percentiles(mut nanos: Vec<u32>) -> [u32; 3] {
    nanos.sort_unstable();
    [500, 990, 999].map(|permille| nanos[nanos.len() * permille / 1000])
}

fn begin_flood(server: &Server) -> Child {
    let mut command = Command::new(std::env::current_exe().expect("own path"));
    command.env(FLOODS, server.address().to_string()).stdout(Stdio::piped());
    let mut child = command.spawn().expect("a child");
    let mut line = String::new();
    std::io::BufReader::new(child.stdout.take().expect("its output")).read_line(&mut line).expect("a line");
    child
}

/// Connects again and again, holds as many connections as it can get, and asks without a pause.
fn flood(address: &ServerAddress) {
    let mut held: Vec<Process> = Vec::new();
    println!("begun");
    std::io::stdout().flush().expect("the parent reads it");
    loop {
        for _ in 0..CLIENTS {
            held.extend(Process::connect(address).ok());
            for process in &held {
                let _ = process.files();
            }
        }
        held.clear();
    }
}
