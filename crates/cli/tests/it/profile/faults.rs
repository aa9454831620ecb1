//! Planted faults of six kinds, through the real kernel: `why` names the right kind. `EVENTRING_FAULTS` says how many,
//! and `EVENTRING_CLEAN` how many runs have none.

use super::service::{KINDS, serve};
use super::{profiled, profiling};
use crate::fixtures::*;
use eventring_stress::missing;

/// Each request of the HTTP service with a number that is a multiple of this one is slow.
const EVERY: u64 = 397;

/// Returns the number that an environment variable says, or this one.
fn number(variable: &str, otherwise: usize) -> usize {
    std::env::var(variable).ok().and_then(|count| count.parse().ok()).unwrap_or(otherwise)
}

fn faults() -> usize {
    number("EVENTRING_FAULTS", KINDS.len())
}

/// Returns the command in a session of its own, which gets processors before those of other programs. The kernel shares
/// them out among sessions first.
fn before_others(command: &Command) -> Command {
    let mut urgent = Command::new("setsid");
    urgent.args(["--wait", "sh", "-c", "echo -20 2>/dev/null >/proc/self/autogroup; exec nice -n -20 \"$@\"", "sh"]);
    urgent.arg(command.get_program()).args(command.get_args());
    for (name, value) in command.get_envs() {
        match value {
            Some(value) => urgent.env(name, value),
            None => urgent.env_remove(name),
        };
    }
    urgent
}

/// A profile of a service.
struct Asked {
    directory: TempDir,
    /// The spans `request`, as JSON lines have them.
    requests: Vec<Value>,
}

impl Asked {
    /// Profiles what the command starts, which is to write `p.evc`. Returns `None`, and says so, if the kernel does not
    /// tell everything here.
    fn profile(directory: TempDir, command: &Command) -> Option<Self> {
        let file = place(&directory, "p.evc");
        let profiled = profiled(&finish(before_others(command)), &file);
        if profiled.summary["missing"] != json!([]) {
            missing(format_args!("root, tracefs and perf_event_open: {}", profiled.summary["missing"]));
            return None;
        }
        let mut requests = exported(&file);
        requests.retain(|line| line["name"] == "request");
        Some(Self { directory, requests })
    }

    /// Asks why these spans took long.
    fn why(&self, which: &[&str]) -> Vec<Value> {
        let file = self.directory.path().join("p.evc");
        let spans = run!("why", &file, "--span", "request", "--json", which).json()["spans"].list().clone();
        for span in &spans {
            let shares: f64 = span["shares"].as_object().unwrap().values().map(|share| share.as_f64().unwrap()).sum();
            assert!((shares - 100.0).abs() < 1.0, "{span:#}");
        }
        spans
    }

    /// Asks why exactly this span took long.
    fn why_this(&self, request: &Value) -> Value {
        let id = request["id"].to_string();
        let spans = self.why(&["--id", id.trim_matches('"')]);
        assert_eq!(spans.len(), 1);
        spans[0].clone()
    }
}

fn serving(test: &str, directory: &TempDir, part: &str) -> Command {
    profiling(test, part, &directory.path().join("p.evc"), &["--sched", "--syscalls"])
}

/// Returns the word that `why` has for a fault.
fn kind_of(fault: &str) -> &str {
    match fault {
        "fsync" | "pages" => "io",
        "pipe" => "input",
        "sleep" => "sleeping",
        "silent" => "executor",
        fault => fault,
    }
}

/// Checks that nearly all faults have the right word.
fn check(found: &[(String, Value)]) {
    let wrong: Vec<_> = found.iter().filter(|(fault, span)| span["cause"] != kind_of(fault)).collect();
    println!("{} of {} faults have the right kind", found.len() - wrong.len(), found.len());
    wrong.iter().for_each(|(fault, span)| println!("{fault}: {span}"));
    // A busy machine may add a fault of its own to a request; of few requests, this may be one.
    assert!(wrong.len() <= (found.len() / 20).max(1), "{} of {} are wrong: {wrong:#?}", wrong.len(), found.len());
}

#[test]
fn of_planted_faults_nearly_all_have_their_kind_and_shares_add_up() {
    let test = plays!(|part| serve(&part));
    let (directory, count) = (directory(), faults());
    let command = serving(test, &directory, &format!("serve 1 {count}"));
    let Some(asked) = Asked::profile(directory, &command) else { return };
    let fault_of = |request: &Value| request["fields"]["fault"].as_str().map(str::to_owned);
    let planted = asked.requests.iter().filter_map(|request| Some((fault_of(request)?, asked.why_this(request))));
    let planted: Vec<_> = planted.collect();
    assert_eq!(planted.len(), count);
    check(&planted);
}

/// Some requests take longer than others on any machine that is shared. The service has measured each of them itself,
/// and says how long it took, and how long its thread had a processor. No other request may have a cause.
#[test]
fn in_runs_without_faults_no_request_has_a_cause_that_it_does_not_have() {
    let test = plays!(|part| serve(&part));
    let (mut false_alarms, mut slow, mut all) = (Vec::new(), 0, 0);
    let runs = number("EVENTRING_CLEAN", 3) as u64;
    for seed in 1..=runs {
        let directory = directory();
        let command = serving(test, &directory, &format!("serve {seed} 0"));
        let Some(asked) = Asked::profile(directory, &command) else { return };
        let of = |id: &Value, field: &str| {
            let wanted = id.to_string();
            let request = asked.requests.iter().find(|request| request["id"].to_string().trim_matches('"') == wanted);
            request.unwrap()["fields"][field].number()
        };
        let median = |field: &str| {
            let mut values: Vec<u64> = asked.requests.iter().map(|request| request["fields"][field].number()).collect();
            values.sort_unstable();
            values[values.len() / 2]
        };
        let (usual_took, usual_ran) = (median("took"), median("ran"));
        let spans = asked.why(&["--slowest", "1000"]);
        assert_eq!(spans.len(), asked.requests.len());
        all += spans.len();
        for span in spans.iter().filter(|span| !span["cause"].is_null()) {
            let took = of(&span["id"], "took").saturating_sub(usual_took);
            let ran = of(&span["id"], "ran").saturating_sub(usual_ran);
            // Two in five of the time beyond the usual have the kind of the cause, at least.
            let has_cause = match span["cause"].text() {
                "computing" => ran * 5 >= took * 2,
                _ => (took - ran.min(took)) * 5 >= took * 2,
            };
            match took >= 400_000 && has_cause {
                true => slow += 1,
                false => false_alarms.push((took, ran, span.clone())),
            }
        }
    }
    false_alarms.iter().for_each(|(took, ran, span)| println!("took {took} ns more, ran {ran} ns more: {span}"));
    println!("{runs} runs, {all} requests: {slow} were slow, {} have a wrong cause", false_alarms.len());
    // On a busy machine a request may be slow for a reason that its own figures do not show.
    assert!(false_alarms.len() * 300 <= all, "{false_alarms:#?}");
    assert!(slow * 20 <= all, "{slow} of {all} requests were slow: this machine is too busy to say anything");
}

#[test]
fn faults_of_the_http_service_have_their_kind() {
    let service = Path::new(crate::program::PROGRAM).with_file_name("examples").join("http_service");
    assert!(service.exists(), "build it: cargo build -p eventring-http-service --examples");
    let each = faults().div_ceil(KINDS.len()) as u64;
    let mut found = Vec::new();
    for fault in ["waiting", "computing", "lock", "sleeping", "child", "executor"] {
        let (directory, [file, ring]) = places(["p.evc", "shop"]);
        let mut command = Command::new(crate::program::PROGRAM);
        command.args(["profile", argument(&ring), "-o", argument(&file), "--json", "--sched", "--syscalls", "--"]);
        command.arg(&service).args(["--ring", argument(&ring), "--slow-how", fault]);
        let requests = (each * EVERY + EVERY / 2).to_string();
        command.args(["--slow-every", &EVERY.to_string(), "--slow-ms", "80", "--requests", &requests]);
        // More customers keep both processors busy, and requests wait for those.
        command.args(["--customers", "2"]);
        command.env_remove("EVENTRING_KEEP").env_remove("EVENTRING_FILTER").env("NO_COLOR", "1");
        let Some(asked) = Asked::profile(directory, &command) else { return };
        let number = |request: &Value| request["fields"]["number"].number();
        let planted: Vec<_> = asked.requests.iter().filter(|request| number(request).is_multiple_of(EVERY)).collect();
        assert_eq!(planted.len() as u64, each);
        found.extend(planted.into_iter().map(|request| (fault.to_owned(), asked.why_this(request))));
    }
    check(&found);
}
