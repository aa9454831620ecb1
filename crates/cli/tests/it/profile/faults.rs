//! Planted faults of six kinds, through the real kernel: `why` names the right kind, also from the ring of the program
//! alone. `EVENTRING_FAULTS` says how many, and `EVENTRING_CLEAN` how many runs have none.

use super::service::{KINDS, serve};
use super::{profiled, profiling};
use crate::fixtures::*;
use crate::triggers::of_program;
use eventring_stress::missing;
use eventring_stress::users::can_be_played;
use std::os::unix::fs::PermissionsExt as _;

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
    let urgent = ["--wait", "sh", "-c", "echo -20 2>/dev/null >/proc/self/autogroup; exec nice -n -20 \"$@\"", "sh"];
    started_by("setsid", &urgent, command)
}

/// Returns the command as a user who may do nothing but have urgent threads, as those of the service are.
fn as_plain_user(command: &Command) -> Command {
    let user = ["--reuid=65534", "--regid=65534", "--clear-groups", "--inh-caps=+sys_nice", "--ambient-caps=+sys_nice"];
    started_by("setpriv", &user, command)
}

/// Returns the command as another program starts it.
fn started_by(program: &str, words: &[&str], command: &Command) -> Command {
    let mut started = Command::new(program);
    started.args(words).arg(command.get_program()).args(command.get_args());
    for (name, value) in command.get_envs() {
        match value {
            Some(value) => started.env(name, value),
            None => started.env_remove(name),
        };
    }
    started
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
        Some(Self::of_capture(directory))
    }

    fn of_capture(directory: TempDir) -> Self {
        let mut requests = exported(directory.path().join("p.evc"));
        requests.retain(|line| line["name"] == "request");
        Self { directory, requests }
    }

    /// Profiles the service.
    fn profile_service(test: &str, part: &str) -> Option<Self> {
        let directory = directory();
        let command = profiling(test, part, &directory.path().join("p.evc"), &["--sched", "--syscalls"]);
        Self::profile(directory, &command)
    }

    /// Captures the ring of the service as a user without rights. Returns `None` if no user can be played.
    fn capture_service(test: &str, part: &str) -> Option<Self> {
        if !can_be_played() {
            return None;
        }
        let directory = directory();
        fs::set_permissions(directory.path(), fs::Permissions::from_mode(0o777)).unwrap();
        let ring = directory.path().join("p.ring");
        let capture = program!("capture", &ring, "-o", directory.path().join("p.evc"), "--json", "--");
        let ended = finish(before_others(&as_plain_user(&of_program(&play(test, part, &ring), capture))));
        assert_eq!(ended.code, Some(0), "{ended:?}");
        Some(Self::of_capture(directory))
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

/// Returns the word that `why` has for a fault if threads alone say what they did. They do not know what they waited
/// for, but for pages from a disk.
fn kind_without_kernel(fault: &str) -> &str {
    match fault {
        "lock" | "fsync" | "pipe" | "sleep" => "blocked",
        "pages" => "io",
        // The worker was busy outside of all spans.
        "silent" => "waiting",
        fault => fault,
    }
}

/// Checks that nearly all faults have the right word: all but one in so many.
fn check(found: &[(String, Value)], kind_of: impl Fn(&str) -> &str, one_in: usize) {
    let wrong: Vec<_> = found.iter().filter(|(fault, span)| span["cause"] != kind_of(fault)).collect();
    println!("{} of {} faults have the right kind", found.len() - wrong.len(), found.len());
    wrong.iter().for_each(|(fault, span)| println!("{fault}: {span}"));
    // A busy machine may add a fault of its own to a request; of few requests, this may be one.
    assert!(wrong.len() <= (found.len() / one_in).max(1), "{} of {} are wrong: {wrong:#?}", wrong.len(), found.len());
}

/// Returns the planted faults of a service, with what `why` says of each.
fn planted(asked: &Asked, count: usize) -> Vec<(String, Value)> {
    let fault_of = |request: &Value| request["fields"]["fault"].as_str().map(str::to_owned);
    let planted = asked.requests.iter().filter_map(|request| Some((fault_of(request)?, asked.why_this(request))));
    let planted: Vec<_> = planted.collect();
    assert_eq!(planted.len(), count);
    planted
}

#[test]
fn of_planted_faults_nearly_all_have_their_kind_and_shares_add_up() {
    let test = plays!(|part| serve(&part));
    let count = faults();
    let Some(asked) = Asked::profile_service(test, &format!("serve 1 {count}")) else { return };
    check(&planted(&asked, count), kind_of, 20);
}

#[test]
fn a_user_without_rights_gets_the_kind_of_nearly_all_faults_from_the_ring_of_the_program_alone() {
    let test = plays!(|part| serve(&part));
    let count = faults();
    let Some(asked) = Asked::capture_service(test, &format!("serve 1 {count}")) else { return };
    let planted = planted(&asked, count);
    for (fault, span) in &planted {
        assert_eq!(span["source"], "program", "{fault}: {span}");
    }
    check(&planted, kind_without_kernel, 10);
}

/// The parts of a request that the kernel and the program both tell, in nanoseconds.
fn told(span: &Value) -> [f64; 3] {
    let nanos = |part: &str| span["shares"][part].as_f64().unwrap() / 100.0 * span["duration_ns"].number() as f64;
    ["computing", "runnable", "blocked"].map(nanos)
}

#[test]
fn of_nearly_all_spans_the_kernel_and_the_program_tell_the_same_times() {
    let test = plays!(|part| serve(&part));
    let (directory, count) = (directory(), faults());
    let file = directory.path().join("p.evc");
    let mut command = profiling(test, &format!("serve 1 {count}"), &file, &["--sched", "--syscalls"]);
    // The ring stays, and is captured again without those of the kernel. The threads may ask for their times so often
    // that none is an estimate.
    command.env("EVENTRING_KEEP", "1").env("EVENTRING_THREAD_TIME", "20%");
    let ring = file.with_extension("ring");
    let Some(by_kernel) = Asked::profile(directory, &command) else { return };
    let alone = crate::fixtures::directory();
    run!("capture", &ring, "--now", "-o", alone.path().join("p.evc")).ends(0);
    let by_program = Asked::of_capture(alone);
    let seldom_waits = |request: &&Value| {
        let fault = request["fields"]["fault"].as_str();
        fault.is_some_and(|fault| !["fsync", "pages"].contains(&fault))
    };
    let id = |request: &Value| request["id"].to_string().trim_matches('"').to_owned();
    let seldom_wait: BTreeSet<String> = by_kernel.requests.iter().filter(seldom_waits).map(id).collect();
    let spans = [(by_kernel, "kernel"), (by_program, "program")].map(|(asked, source)| {
        let mut spans = asked.why(&["--slowest", "10000"]);
        spans.iter().for_each(|span| assert_eq!(span["source"], source, "{span}"));
        spans.sort_by_key(|span| span["start_ns"].number());
        spans
    });
    assert_eq!(spans[0].len(), spans[1].len());
    let mut differ = Vec::new();
    for (kernel, program) in spans[0].iter().zip(&spans[1]) {
        assert_eq!(kernel["id"], program["id"]);
        let [by_kernel, by_program] = [kernel, program].map(told);
        let busy: f64 = by_kernel.iter().sum();
        if by_kernel.iter().zip(by_program).any(|(kernel, program)| (kernel - program).abs() * 100.0 > busy) {
            differ.push((kernel, program));
        }
    }
    println!("of {} spans, {} differ", spans[0].len(), differ.len());
    assert!(differ.len() * 20 <= spans[0].len(), "{differ:#?}");
    // At each switch, the profile itself takes time before it says so. Those who wait hundreds of times show this.
    differ.retain(|(kernel, _)| seldom_wait.contains(&kernel["id"].to_string()));
    println!("of {count} faults, {} of those that seldom wait differ", differ.len());
    assert!(differ.len() <= (count / 20).max(1), "{differ:#?}");
}

#[test]
fn in_runs_without_faults_no_request_has_a_cause_that_it_does_not_have() {
    let test = plays!(|part| serve(&part));
    check_clean(|part| Asked::profile_service(test, part));
}

#[test]
fn a_user_without_rights_gets_no_wrong_cause_in_runs_without_faults() {
    let test = plays!(|part| serve(&part));
    check_clean(|part| Asked::capture_service(test, part));
}

fn check_clean(record: impl Fn(&str) -> Option<Asked>) {
    let (mut false_alarms, mut slow, mut all) = (Vec::new(), 0, 0);
    let runs = number("EVENTRING_CLEAN", 3) as u64;
    for seed in 1..=runs {
        let Some(asked) = record(&format!("serve {seed} 0")) else { return };
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
    check(&found, kind_of, 20);
}
