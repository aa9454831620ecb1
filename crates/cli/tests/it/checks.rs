//! `eventring check`: each case in which nothing is recorded has its sentence, and the exit code says whether something
//! is.

use crate::program::{Run, argument, finish, program};
use crate::shop::{Order, Shop};
use eventring::record;
use eventring::recorder::{ContentDescription, Recorder};
use eventring::tracing::{PerfRecorder, RecorderSubscriber};
use eventring_stress::child::{Talk, part, place, play, say, wait_for_parent};
use eventring_stress::{test_name, users};
use serde_json::Value;
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Command, Stdio};

const TEST: &str = test_name!("each_case_in_which_nothing_is_recorded_has_its_sentence");

fn shop(name: &str) -> Recorder {
    let builder = Recorder::builder(ContentDescription::from_event_type::<Shop>()).config(name).shifts(15, 21);
    builder.prefault(false).numbered(true).build().unwrap()
}

fn spans(name: &str) -> PerfRecorder {
    PerfRecorder::builder().config(name).shifts(15, 21).shards(2).prefault(false).build().unwrap()
}

fn order(ring: &Recorder) {
    record!(ring => Shop::OrderPlaced, &Order { id: 1 });
}

/// Plays a program that records, or does not, until its parent ends it.
fn victim(part: &str) {
    std::env::set_current_dir(place()).unwrap();
    let mut kept: Vec<Box<dyn std::any::Any>> = Vec::new();
    match part {
        "records" => {
            let ring = shop("shop");
            order(&ring);
            kept.push(Box::new(ring));
            eventring::tracing::init("spans:22MiB");
            tracing::info!("one");
        }
        "init" => {
            kept.push(Box::new(eventring::tracing::init("spans:22MiB")));
            tracing::info!("one");
        }
        "anonymous" => {
            eventring::tracing::init("spans:22MiB");
            let ring = Recorder::builder(ContentDescription::from_event_type::<Shop>()).anonymous().shifts(15, 21);
            let ring = ring.prefault(false).build().unwrap();
            order(&ring);
            tracing::info!("one");
            kept.push(Box::new(ring));
        }
        "typed" | "typed2" => {
            let ring = shop("shop");
            if part == "typed" {
                order(&ring);
            }
            kept.push(Box::new(ring));
        }
        "domains" => {
            let builder =
                Recorder::builder(ContentDescription::from_event_type::<Shop>()).config("shop").shifts(15, 21);
            let ring = builder.prefault(false).domains("none").build().unwrap();
            order(&ring);
            kept.push(Box::new(ring));
        }
        "no subscriber" => kept.push(Box::new(spans("spans"))),
        "scoped" => {
            tracing::subscriber::set_global_default(RecorderSubscriber::new(spans("spans"))).unwrap();
            let _other = tracing::subscriber::set_default(tracing_subscriber::registry());
            tracing::info!("it goes to the other subscriber");
        }
        "other subscriber" => {
            tracing::subscriber::set_global_default(tracing_subscriber::registry()).unwrap();
            kept.push(Box::new(eventring::tracing::init("spans")));
        }
        "from environment" => kept.push(Box::new(eventring::tracing::try_init_from_env().unwrap())),
        "ended" => {
            let ring = shop("shop");
            order(&ring);
            ring.keep(true);
        }
        "forked" => {
            let ring = shop("shop");
            order(&ring);
            // SAFETY: the child only waits, prints and exits; the process has no other thread that matters to it.
            let child = unsafe { libc::fork() };
            if child == 0 {
                // It ends with its parent, and does not keep the pipes of the tests open.
                // SAFETY: the call has no preconditions.
                unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) };
                std::thread::sleep(std::time::Duration::from_secs(600));
                // SAFETY: it ends the child at once.
                unsafe { libc::_exit(0) };
            }
            say(child);
            wait_for_parent();
            // SAFETY: the child is this process's own.
            unsafe { libc::kill(child, libc::SIGKILL) };
            return;
        }
        "exec" => {
            order(&shop("shop"));
            let ring = shop("shop");
            order(&ring);
            say("ready");
            panic!("{}", Command::new("sleep").arg("600").exec());
        }
        _ => panic!("{part}"),
    }
    say("ready");
    wait_for_parent();
}

/// A program that plays a part, with the directory of its rings.
struct Case {
    talk: Talk,
    directory: tempfile::TempDir,
    told: String,
}

impl Case {
    fn start(part: &str, variables: &[(&str, &str)]) -> Self {
        Self::start_in(tempfile::tempdir_in("/dev/shm").unwrap(), part, variables)
    }

    fn start_in(directory: tempfile::TempDir, part: &str, variables: &[(&str, &str)]) -> Self {
        let mut command = play(TEST, part, directory.path());
        for name in ["EVENTRING_FILTER", "EVENTRING_PERF", "EVENTRING_KEEP", "EVENTRING_DOMAINS", "EVENTRING_SERVER"] {
            command.env_remove(name);
        }
        command.env("EVENTRING_DIR", directory.path()).envs(variables.iter().copied());
        let mut talk = Talk::with(command);
        let told = talk.hear();
        Self { talk, directory, told }
    }

    fn check(&self, name: &str) -> Run {
        check_in(self.directory.path(), &[name, "--json"])
    }

    /// Checks the ring, or `pid` for the program. Returns the answer, which says that nothing is recorded.
    fn nothing(&self, name: &str, words: &str) -> Value {
        let pid = format!("pid:{}", self.talk.child.id());
        nothing(&self.check(if name == "pid" { &pid } else { name }), words)
    }
}

fn check_in(directory: &Path, arguments: &[&str]) -> Run {
    let mut command = program(&["check"]);
    command.args(arguments).env("EVENTRING_DIR", directory).env_remove("EVENTRING_FILTER");
    finish(command)
}

/// Checks that an answer says that nothing is recorded, with these words.
fn nothing(run: &Run, words: &str) -> Value {
    assert!(run.code.is_some_and(|code| code != 0), "{run:?}");
    let answer: Value = serde_json::from_str(&run.out).unwrap_or_else(|error| panic!("{error}: {run:?}"));
    assert_eq!(answer["recording"], false, "{answer:#}");
    let problems: Vec<&str> = answer["problems"].as_array().unwrap().iter().map(|it| it.as_str().unwrap()).collect();
    assert!(problems.iter().any(|problem| problem.contains(words)), "expected `{words}`: {answer:#}");
    answer
}

#[test]
fn a_program_that_records_is_said_to_record_and_what_it_leaves_out() {
    let case =
        Case::start_in(tempfile::tempdir_in("/dev/shm").unwrap(), "records", &[("EVENTRING_FILTER", "warn,it=info")]);
    for name in ["shop", "spans", &format!("pid:{}", case.talk.child.id())] {
        let answer = case.check(name).json();
        assert_eq!(
            (&answer["recording"], &answer["problems"]),
            (&true.into(), &Value::Array(Vec::new())),
            "{answer:#}"
        );
        for time in ["since", "last_event"] {
            let time: jiff::Timestamp = answer[time].as_str().unwrap().parse().unwrap();
            assert!(time.duration_until(jiff::Timestamp::now()).as_secs() < 600, "{answer:#}");
        }
        assert!(answer["past_seconds"].as_f64().unwrap() > 0.0 && answer["left_out"].is_array(), "{answer:#}");
        let rings = answer["rings"].as_array().unwrap();
        assert_eq!(rings.len(), if name.starts_with("pid") { 2 } else { 1 }, "{answer:#}");
        assert!(rings.iter().all(|ring| ring["pid"] == case.talk.child.id()), "{answer:#}");
        if name != "shop" {
            assert!(answer["left_out"][0].as_str().unwrap().contains("EVENTRING_FILTER=warn,it=info"), "{answer:#}");
        }
    }
    let text = check_in(case.directory.path(), &["shop"]);
    for label in
        ["✓ recording ", "✓ since ", "✓ last event ", "✓ past ", "· readers ", "✓ directory ", "core files ", "perf "]
    {
        assert!(text.out.contains(label), "{text:?}");
    }
    // A reader is seen.
    let watch = crate::program::Live::start(&["watch", argument(&case.directory.path().join("shop"))]);
    let is_seen = |_: &u32| {
        let answer = case.check("shop").json();
        answer["readers"]
            .as_array()
            .unwrap()
            .iter()
            .any(|it| it.as_str().unwrap().contains(&watch.child.id().to_string()))
    };
    assert!((0..100).any(|number| is_seen(&number)), "{:?}", case.check("shop"));
    watch.interrupt();
    watch.end();
    std::thread::sleep(std::time::Duration::from_millis(20));
    let late = check_in(case.directory.path(), &["shop", "--json", "--within", "10ms"]);
    nothing(&late, "more than --within allows");
}

#[test]
fn a_filter_is_said_to_leave_out_something_unless_it_lets_everything_through() {
    for (filter, server, words) in [
        ("trace", "", None),
        ("trace", "1", None),
        ("TRACE,it=trace", "", None),
        ("it=trace", "", Some("EVENTRING_FILTER=it=trace does not let through")),
        ("trace,it=debug", "1", Some("does not let through")),
    ] {
        let case = Case::start("records", &[("EVENTRING_FILTER", filter), ("EVENTRING_SERVER", server)]);
        let answer = case.check("spans").json();
        let left_out = answer["left_out"].as_array().unwrap();
        match words {
            None => assert!(left_out.is_empty(), "{filter} {server}: {answer:#}"),
            Some(words) => assert!(left_out[0].as_str().unwrap().contains(words), "{filter} {server}: {answer:#}"),
        }
    }
}

#[test]
fn each_case_in_which_nothing_is_recorded_has_its_sentence() {
    if let Some(part) = part() {
        return victim(&part);
    }
    let off = Case::start("init", &[("EVENTRING_FILTER", "off")]);
    off.nothing("spans", "EVENTRING_FILTER=off leaves out every span and log record");
    let warn = Case::start("init", &[("EVENTRING_FILTER", "warn")]);
    let answer = warn.nothing("pid", "the program has made no span or log record that its filter lets through");
    assert!(answer["left_out"][0].as_str().unwrap().contains("EVENTRING_FILTER=warn"), "{answer:#}");
    let served = Case::start("init", &[("EVENTRING_FILTER", "off"), ("EVENTRING_SERVER", "1")]);
    served.nothing("pid", "the filter in force is `off`, which leaves out every span and log record");
    let answer =
        Case::start("domains", &[("EVENTRING_SERVER", "1")]).nothing("shop", "all domains of typed events are off");
    assert_eq!(answer["left_out"][0], "events of the domains shop", "{answer:#}");
    let unsubscribed = Case::start("no subscriber", &[]);
    unsubscribed.nothing("spans", "its subscriber or layer is not installed where they are made");
    Case::start("scoped", &[]).nothing("spans", "a scoped subscriber of another library takes them");
    let other = Case::start("other subscriber", &[]);
    other.nothing("pid", "a global subscriber already");
    other.nothing("spans", "a global subscriber already");
    // What the program says of one ring is no reason why there is no other one.
    other.nothing("nothing", "a ring is removed when its program exits normally");
    let unset = Case::start("from environment", &[]);
    unset.nothing("pid", "EVENTRING_PERF is not set in the environment of");
    let set = Case::start("from environment", &[("EVENTRING_PERF", "spans:22MiB")]);
    set.nothing("spans", "nothing was recorded in spans yet");
    Case::start("typed2", &[]).nothing("shop", "no `record!` of its events was reached");
    Case::start("domains", &[]).nothing("shop", "their domains are switched off");
    let ended = Case::start("ended", &[]);
    ended.nothing("shop", "the ring shop has ended: its program ended its recording between");
    let mut dead = Case::start("typed", &[]);
    let elsewhere = tempfile::tempdir_in("/dev/shm").unwrap();
    nothing(&check_in(elsewhere.path(), &["shop", "--json"]), "records it in another directory: set EVENTRING_DIR=");
    dead.talk.kill();
    dead.nothing("shop", "the program of shop died between");
    dead.nothing("pid", "has ended; it has left");
    nothing(&dead.check("nothing"), "a ring is removed when its program exits normally");
    nothing(&dead.check("shop:16:27"), "give the name alone");
    let never = nothing(&dead.check("pid:4000000000"), "there is no process 4000000000 now");
    assert!(!never["problems"][0].as_str().unwrap().contains("ended"), "{never:#}");
    nothing(&dead.check("no*"), "no ring fits");
    let snapshot = dead.directory.path().join("shop.zst");
    let mut command = program(&["snapshot", "shop", "-o", argument(&snapshot)]);
    command.env("EVENTRING_DIR", dead.directory.path());
    assert_eq!(finish(command).code, Some(0));
    nothing(&dead.check(argument(&snapshot)), "is a snapshot: nobody writes to it");
    let mut stranger = Command::new("sleep").arg("600").stdin(Stdio::null()).spawn().unwrap();
    let answer = dead.check(&format!("pid:{}", stranger.id()));
    stranger.kill().unwrap();
    stranger.wait().unwrap();
    nothing(&answer, "does not contain eventring: it was built without it");
    let forked = Case::start("forked", &[]);
    nothing(&forked.check(&format!("pid:{}", forked.told)), "was forked from process");
    assert_eq!(forked.check("shop").json()["recording"], true, "the parent goes on");
}

#[test]
fn a_ring_of_a_later_instance_has_another_name_and_a_removed_one_has_none() {
    let first = Case::start("typed", &[]);
    let path = first.directory.path().join("shop");
    std::fs::rename(&path, first.directory.path().join("shop~2")).unwrap();
    first.nothing("shop", "another process or user had the name when the program began: its ring is called shop~2");
    std::fs::remove_file(first.directory.path().join("shop~2")).unwrap();
    let removed = first.check(&format!("pid:{}", first.talk.child.id())).json();
    assert_eq!(removed["recording"], true);
    assert!(removed["problems"][0].as_str().unwrap().contains("was removed while its program runs"), "{removed:#}");
}

#[test]
fn rings_that_never_had_a_file_are_no_problem() {
    let case = Case::start("anonymous", &[]);
    let answer = case.check(&format!("pid:{}", case.talk.child.id())).json();
    assert_eq!((&answer["recording"], &answer["problems"]), (&true.into(), &serde_json::json!([])), "{answer:#}");
}

#[test]
fn a_program_that_has_replaced_itself_records_no_more() {
    let mut case = Case::start("exec", &[]);
    let mut answer = case.check("shop");
    // The new program may not have begun yet.
    for _ in 0..500 {
        if answer.code != Some(0) {
            break;
        }
        std::thread::sleep(std::time::Duration::from_millis(10));
        answer = case.check("shop");
    }
    nothing(&answer, "has replaced itself by `exec`");
    case.talk.child.kill().unwrap();
}

#[test]
fn a_directory_of_another_user_is_named() {
    if !users::can_be_played() {
        return;
    }
    let case = Case::start("typed", &[]);
    let closed = case.directory.path().join("closed");
    std::fs::create_dir(&closed).unwrap();
    std::fs::set_permissions(&closed, std::fs::Permissions::from_mode(0o700)).unwrap();
    std::fs::set_permissions(case.directory.path(), std::fs::Permissions::from_mode(0o755)).unwrap();
    // The user may not be allowed to go to the program's own directory.
    let copy = case.directory.path().join("eventring");
    std::fs::copy(crate::program::PROGRAM, &copy).unwrap();
    let by_user = |directory: &Path, name: &str| {
        let mut command = Command::new(&copy);
        command.args(["check", name, "--json"]).env("EVENTRING_DIR", directory).current_dir("/").uid(65534).gid(65534);
        finish(command)
    };
    let answer = nothing(&by_user(&closed, "shop"), "is of another user, and this user may not look into it");
    assert!(answer["directory"]["allowed"] == false, "{answer:#}");
    nothing(&by_user(case.directory.path(), &format!("pid:{}", case.talk.child.id())), "this user may not look into");
    // A ring that is there and cannot be read is not said to be absent.
    std::fs::set_permissions(case.directory.path().join("shop"), std::fs::Permissions::from_mode(0o600)).unwrap();
    let unread = by_user(case.directory.path(), "shop");
    assert!(unread.code == Some(11) && unread.out.contains("permission denied"), "{unread:?}");
    let mut list = Command::new(&copy);
    list.args(["list", argument(case.directory.path())]).current_dir("/").uid(65534).gid(65534);
    let list = finish(list);
    assert!(list.code == Some(11) && list.err.contains("as far as this user may look"), "{list:?}");
}

/// Returns true if a recorder makes a ring in this ring directory.
fn records_in(directory: &Path) -> bool {
    let mut command = program(&["exec", "replay", crate::program::KEPT, "--ring", "recorded"]);
    command.env("EVENTRING_DIR", directory);
    finish(command).code == Some(0)
}

#[test]
fn a_directory_in_which_no_ring_would_be_made_is_not_right() {
    let directory = tempfile::tempdir_in("/dev/shm").unwrap();
    let place = |name: &str| directory.path().join(name);
    std::fs::create_dir(place("open")).unwrap();
    std::fs::set_permissions(place("open"), std::fs::Permissions::from_mode(0o777)).unwrap();
    std::fs::write(place("file"), "").unwrap();
    std::os::unix::fs::symlink(directory.path(), place("link")).unwrap();
    for (name, words) in
        [("open", "everybody may replace files in it"), ("file", "not a directory"), ("link", "it is a link")]
    {
        let answer: Value = serde_json::from_str(&check_in(&place(name), &["shop", "--json"]).out).unwrap();
        let told = answer["directory"]["text"].as_str().unwrap();
        assert!(answer["directory"]["allowed"] == false && told.contains(words), "{name}: {answer:#}");
        assert!(!records_in(&place(name)), "{name}");
    }
    // These are right: only their owner may replace files, or each owner his own.
    std::fs::set_permissions(place("open"), std::fs::Permissions::from_mode(0o1777)).unwrap();
    for name in ["open", "later/one"] {
        let answer: Value = serde_json::from_str(&check_in(&place(name), &["shop", "--json"]).out).unwrap();
        assert_eq!(answer["directory"]["allowed"], true, "{name}: {answer:#}");
        assert!(records_in(&place(name)), "{name}");
    }
    if users::can_be_played() {
        // Nobody but root can make this one.
        std::fs::set_permissions(directory.path(), std::fs::Permissions::from_mode(0o755)).unwrap();
        let copy = place("eventring");
        std::fs::copy(crate::program::PROGRAM, &copy).unwrap();
        let mut command = Command::new(&copy);
        command.args(["check", "shop", "--json"]).env("EVENTRING_DIR", place("nobodys")).current_dir("/").uid(65534);
        let answer = nothing(&finish(command), "make it and give it to this user");
        assert_eq!(answer["directory"]["allowed"], false, "{answer:#}");
    }
}

/// Returns the command `eventring ARGUMENTS -- PROGRAM` for a program that can make no ring called `spans`.
fn waiting(directory: &Path, arguments: &[&str]) -> Command {
    let program_in_vain = play(TEST, "other subscriber", directory);
    let mut command = program(arguments);
    command.arg("--").arg(program_in_vain.get_program()).args(program_in_vain.get_args());
    command.envs(program_in_vain.get_envs().filter_map(|(name, value)| Some((name, value?))));
    command.env("EVENTRING_DIR", directory).env_remove("EVENTRING_KEEP");
    command
}

#[test]
fn who_waits_for_a_ring_tells_why_its_program_could_not_make_it() {
    use std::io::BufRead as _;
    const WHY: &str = "records nothing as `spans`: ";
    const WAITS: &str = "waiting for the ring spans to be made: ";
    let directory = tempfile::tempdir_in("/dev/shm").unwrap();
    let output = directory.path().join("out.evc");
    let capture = ["capture", "spans", "-o", argument(&output)];
    let mut command = waiting(directory.path(), &capture);
    command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let lines = std::io::BufReader::new(child.stderr.take().unwrap()).lines();
    let mut lines = lines.map(Result::unwrap);
    let told = lines.find(|line| line.contains("waiting for the ring")).unwrap();
    assert!(told.contains(WAITS) && told.contains(WHY) && told.contains("a global subscriber already"), "{told}");
    // Others who wait for a ring of this name learn it, too, and who does not wait.
    for verb in [&["watch", "spans", "--reopen"][..], &["capture", "spans", "--wait", "-o", "other.evc"]] {
        let mut command = program(verb);
        command.env("EVENTRING_DIR", directory.path()).current_dir(directory.path());
        command.stdout(Stdio::null()).stderr(Stdio::piped());
        let mut other = command.spawn().unwrap();
        let mut said = std::io::BufReader::new(other.stderr.take().unwrap()).lines().map(Result::unwrap);
        let told = said.find(|line| line.contains("waiting for the ring")).unwrap();
        assert!(told.contains(WAITS) && told.contains(WHY), "{verb:?}: {told}");
        other.kill().unwrap();
        other.wait().unwrap();
    }
    for verb in [&["watch", "spans"][..], &["info", "spans"], &["summary", "spans"]] {
        let mut command = program(verb);
        command.env("EVENTRING_DIR", directory.path()).current_dir(directory.path());
        let refused = finish(command);
        assert!(refused.code == Some(3) && refused.err.contains(WHY), "{verb:?}: {refused:?}");
    }
    // The program ends, and the capture says it again.
    drop(child.stdin.take());
    let last = lines.last().unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(3));
    assert!(last.starts_with("error: ") && last.contains(WHY), "{last}");
    assert!(!output.exists());
}
