//! One line sets up recording: in code, from the environment, or with layers. If the rings cannot be made, the
//! program goes on.

use crate::fixtures::*;
use eventring::tracing::{Counter, SetupErrorKind, init, try_init, try_init_from_env};
use tracing::level_filters::LevelFilter;
use tracing_subscriber::prelude::*;

const VARIABLES: [&str; 3] = ["EVENTRING_PERF", "EVENTRING_FILTER", "EVENTRING_REDACT"];

static SEEN: Counter = Counter::new("seen");

/// Plays a program. It prints the result of its set-up, records some events, and lives until its parent ends it.
fn serve(set_up: impl FnOnce() -> Result<bool, String>) {
    say(match set_up() {
        Ok(true) => "recording".to_owned(),
        Ok(false) => "off".to_owned(),
        Err(error) => error,
    });
    tracing::info_span!("request", user.name = "kim", user.password = "hunter2").in_scope(|| {
        tracing::debug!(token = 17, "details");
        tracing::info!("served");
    });
    SEEN.sample(1);
    say("served");
    wait_for_parent();
}

fn command(test: &str, directory: &Path, variables: &[(&str, &str)]) -> Command {
    command_of(test, "service", directory, variables)
}

fn command_of(test: &str, part: &str, directory: &Path, variables: &[(&str, &str)]) -> Command {
    let mut command = play(test, part, &directory.join("app"));
    VARIABLES.iter().for_each(|variable| {
        command.env_remove(variable);
    });
    command.env("EVENTRING_DIR", directory).envs(variables.iter().copied());
    command
}

/// Runs the program with these environment variables. Returns what it printed about its set-up, and what its rings
/// then hold.
fn outcome(test: &str, directory: &Path, variables: &[(&str, &str)]) -> (String, Vec<String>) {
    let mut talk = Talk::with(command(test, directory, variables));
    let printed = talk.hear();
    assert_eq!(talk.hear(), "served");
    let recorded = PerfReader::open(directory.join("app")).map(|mut reader| messages(&mut reader)).unwrap_or_default();
    assert!(talk.end().success());
    // A normal exit removes the files.
    assert!(!directory.join("app").exists());
    (printed, recorded)
}

fn messages(reader: &mut PerfReader) -> Vec<String> {
    let records = reference::records(reader);
    let print = |name: &str, fields: &eventring::tracing::Fields| {
        let fields: Vec<_> = fields.values.iter().map(|field| format!(" {}={}", field.name, field.value)).collect();
        format!("{name}{}", fields.concat())
    };
    let reported = records.iter().filter_map(|record| match &record.content {
        PerfContent::SpanNew { call_site, fields, .. } => Some(print(&call_site.name, fields)),
        PerfContent::Event { fields, .. } => Some(print("event", fields)),
        PerfContent::Counter { call_site, value, .. } => Some(format!("{} {value}", call_site.name)),
        _ => None,
    });
    reported.collect()
}

const ALL: [&str; 4] =
    ["request user.name=kim user.password=hunter2", "event message=details token=17", "event message=served", "seen 1"];
const FROM_INFO: [&str; 3] = [ALL[0], ALL[2], ALL[3]];

#[test]
fn one_line_records_what_is_at_level_info_or_what_the_environment_says() {
    let test = plays!(serve(|| {
        init("app:15:21");
        Ok(true)
    }));
    let directory = directory();
    let outcome = |variables: &[(&str, &str)]| outcome(test, directory.path(), variables);
    assert_eq!(outcome(&[]), ("recording".into(), FROM_INFO.map(String::from).to_vec()));
    for (filter, count) in [("[request{user.name=kim}]=debug", 4), ("[request{user.name=eve}]=debug", 2)] {
        let (_, recorded) = outcome(&[("EVENTRING_FILTER", filter)]);
        assert_eq!(recorded.len(), count, "{filter}: {recorded:?}");
    }
    let (_, recorded) = outcome(&[("EVENTRING_FILTER", "debug")]);
    // The message and the fields may be in any order.
    assert_eq!(recorded.len(), ALL.len());
    assert!(recorded[1].contains("token=17"), "{recorded:?}");
    let (_, recorded) = outcome(&[("EVENTRING_FILTER", "debug"), ("EVENTRING_REDACT", "password, token")]);
    assert_eq!(recorded[0], "request user.name=kim user.password=<redacted>");
    assert!(recorded[1].contains("token=<redacted>"), "{recorded:?}");
    // Quoted names stand for themselves, without the marks.
    let quoted = r#"[request{"user.name"=kim,user."password"}]=debug"#;
    let (_, recorded) = outcome(&[("EVENTRING_FILTER", quoted), ("EVENTRING_REDACT", r#""password", "user id""#)]);
    assert_eq!((recorded.len(), &*recorded[0]), (4, "request user.name=kim user.password=<redacted>"));
}

#[test]
fn a_service_is_switched_on_by_its_environment_and_otherwise_costs_nothing() {
    let test = plays!(serve(|| {
        let recording = try_init_from_env().map_err(|error| error.to_string())?;
        assert_eq!(recording.is_some(), tracing::enabled!(tracing::Level::ERROR));
        Ok(recording.is_some())
    }));
    let directory = directory();
    let outcome = |variables: &[(&str, &str)]| outcome(test, directory.path(), variables);
    assert_eq!(outcome(&[]), ("off".into(), vec![]));
    assert_eq!(outcome(&[("EVENTRING_PERF", "")]), ("off".into(), vec![]));
    assert_eq!(outcome(&[("EVENTRING_PERF", "app")]), ("recording".into(), FROM_INFO.map(String::from).to_vec()));
    let (printed, recorded) = outcome(&[("EVENTRING_PERF", "app"), ("EVENTRING_FILTER", "loud=loud")]);
    assert!(
        printed.contains("`loud=loud`") && printed.contains("EVENTRING_FILTER") && recorded.is_empty(),
        "{printed}"
    );
    // Each of these values is a mistake. The two filters would match nothing. No field can have the name
    // `password;token`, and marks around a whole list are kept by the environment files of Docker.
    let filters = ["inof", " ,", "6"].map(|value| ("EVENTRING_FILTER", value));
    let redacted =
        ["password;token", "pass*", "\"password,token\"", "password:token"].map(|value| ("EVENTRING_REDACT", value));
    for (variable, value) in filters.into_iter().chain(redacted) {
        let (printed, recorded) = outcome(&[("EVENTRING_PERF", "app"), (variable, value)]);
        assert!(
            printed.contains(&format!("`{value}`")) && printed.contains(variable) && recorded.is_empty(),
            "{printed}"
        );
    }
}

#[test]
fn a_layer_from_the_environment_is_switched_on_by_it_and_has_the_environments_filter_for_itself() {
    let test = plays!(serve(|| {
        let layer = RecorderLayer::try_from_env().map_err(|error| {
            assert_eq!(error.kind(), SetupErrorKind::Filter);
            assert!(PERF.installed().is_none());
            error.to_string()
        })?;
        let is_on = layer.is_some();
        let stack = tracing_subscriber::registry()
            .with(layer)
            .with(tracing_subscriber::fmt::layer().with_writer(std::io::sink));
        tracing::subscriber::set_global_default(stack).unwrap();
        // The filter belongs to the recorder's layer alone. Other layers still see every level.
        assert_eq!(LevelFilter::current(), LevelFilter::TRACE);
        Ok(is_on)
    }));
    let directory = directory();
    let outcome = |variables: &[(&str, &str)]| outcome(test, directory.path(), variables);
    assert_eq!(outcome(&[]), ("off".into(), vec![]));
    let (printed, recorded) = outcome(&[("EVENTRING_PERF", "app:15:21"), ("EVENTRING_REDACT", "user.password")]);
    assert_eq!(recorded[0], "request user.name=kim user.password=<redacted>");
    assert_eq!(
        (printed.as_str(), recorded.len()),
        ("recording", ALL.len()),
        "without the variable nothing is filtered"
    );
    let (_, recorded) = outcome(&[("EVENTRING_PERF", "app:15:21"), ("EVENTRING_FILTER", "info")]);
    assert_eq!(recorded, FROM_INFO);
    for (filter, count) in [("[request{user.name=kim}]=debug", 4), ("[request{user.name=eve}]=debug", 2)] {
        let (_, recorded) = outcome(&[("EVENTRING_PERF", "app:15:21"), ("EVENTRING_FILTER", filter)]);
        assert_eq!(recorded.len(), count, "{filter}: {recorded:?}");
    }
    let (printed, recorded) = outcome(&[("EVENTRING_PERF", "app:15:21"), ("EVENTRING_FILTER", "info,loud=loud")]);
    assert!(
        printed.contains("`loud=loud`") && printed.contains("EVENTRING_FILTER") && recorded.is_empty(),
        "{printed}"
    );
}

#[test]
fn rings_are_kept_on_request_also_those_that_are_created_later() {
    let test = plays!(|part| {
        init("app:15:21").keep(part == "keeps");
        // There are two threads at a time, so each has a ring.
        let both = std::sync::Barrier::new(2);
        std::thread::scope(|scope| {
            let work = || {
                tracing::info!("hello");
                both.wait();
            };
            scope.spawn(work);
            scope.spawn(work);
        });
        say("done");
    });
    for (part, remaining) in [("keeps", vec!["app", "app.1", "app.now"]), ("removes", vec![])] {
        let directory = directory();
        let mut talk = Talk::with(command_of(test, part, directory.path(), &[]));
        assert_eq!(talk.hear(), "done");
        assert!(talk.end().success());
        assert_eq!(names_in(&directory), remaining, "{part}");
    }
}

#[test]
fn a_program_whose_rings_cannot_be_created_gets_the_reason_and_continues() {
    let test = plays!(serve(|| {
        let error = try_init(place()).unwrap_err();
        assert_eq!(error.kind(), SetupErrorKind::Recorder);
        assert!(std::error::Error::source(&error).is_some());
        // Nothing was installed: spans are off, and the program can still set another subscriber.
        assert!(PERF.installed().is_none() && !tracing::enabled!(tracing::Level::ERROR));
        tracing::subscriber::set_global_default(tracing_subscriber::registry()).unwrap();
        Err(error.to_string())
    }));
    let directory = directory();
    // There is no directory of that name, and it cannot be made.
    fs::write(directory.path().join("file"), "").unwrap();
    let mut talk = Talk::with(command(
        test,
        &directory.path().join("file"),
        &[("EVENTRING_DIR", directory.path().to_str().unwrap())],
    ));
    let printed = talk.hear();
    assert!(
        printed.contains(&format!("{}/file", directory.path().display()))
            && talk.hear() == "served"
            && talk.end().success(),
        "{printed}"
    );
}

/// Plays a program with the one line of the README. It says where its rings are, and lives until its parent ends it.
fn record_in_one_line() {
    init("app:15:21");
    say(PERF.installed().and_then(|recorder| recorder.path()).unwrap_or("nowhere".as_ref()).display());
    tracing::info!("served");
    say("served");
    wait_for_parent();
}

fn start(test: &str, directory: &Path) -> (Talk, String) {
    let mut talk = Talk::with(command(test, directory, &[]));
    let place = talk.hear();
    assert_eq!(talk.hear(), "served");
    let name = Path::new(&place).file_name().unwrap().to_str().unwrap();
    (talk, name.to_owned())
}

#[test]
fn a_second_instance_records_under_a_name_of_its_own() {
    let test = plays!(record_in_one_line());
    let directory = directory();
    let start = || start(test, directory.path());
    let (mut first, mut second, mut third) = (start(), start(), start());
    assert_eq!([&first.1, &second.1, &third.1], ["app", "app~2", "app~3"]);
    for name in ["app", "app~2", "app~3"] {
        assert_eq!(messages(&mut PerfReader::open(directory.path().join(name)).unwrap()), [ALL[2]]);
    }
    // The lowest free name is taken: that of an instance that has ended, and that of one that was killed.
    assert!(second.0.end().success());
    let mut second = start();
    assert_eq!(second.1, "app~2");
    second.0.kill();
    let mut second = start();
    assert_eq!(second.1, "app~2");
    for instance in [&mut first, &mut second, &mut third] {
        assert!(instance.0.end().success());
    }
    assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 0);
}

#[test]
fn a_ring_of_another_user_keeps_its_name_and_this_one_gets_the_next() {
    use std::os::unix::{fs::PermissionsExt as _, process::CommandExt as _};

    let test = plays!(record_in_one_line());
    let directory = directory();
    fs::set_permissions(directory.path(), fs::Permissions::from_mode(0o1777)).unwrap();
    // The other user must be able to start this executable.
    let mut probe = Command::new(std::env::current_exe().unwrap());
    if probe.arg("--list").stdout(std::process::Stdio::null()).uid(4711).gid(4711).status().is_err() {
        return eventring_stress::missing("only root can play another user");
    }
    let mut others = command(test, directory.path(), &[]);
    others.uid(4711).gid(4711);
    let mut others = Talk::with(others);
    assert_eq!(Path::new(&others.hear()), directory.path().join("app"));
    assert_eq!(others.hear(), "served");
    let mut own = start(test, directory.path());
    assert_eq!(own.1, "app~2");
    assert!(own.0.end().success() && others.end().success());
}

#[test]
fn a_program_that_is_started_in_the_moment_after_a_kill_has_the_same_name_again() {
    let test = plays!({
        // The program is loaded before its predecessor is killed, so that it makes its ring in the moment after.
        say("loaded");
        wait_for_parent();
        // The kernel takes a process apart more slowly if it has much memory.
        init("app:19:26");
        say(PERF.installed().and_then(|recorder| recorder.path()).unwrap_or("nowhere".as_ref()).display());
        wait_for_parent();
    });
    let directory = directory();
    let mut before: Option<Talk> = None;
    for round in 0..40 {
        let mut next = Talk::with(command(test, directory.path(), &[]));
        assert_eq!(next.hear(), "loaded");
        let mut stdin = next.child.stdin.as_ref().unwrap();
        if let Some(before) = &mut before {
            before.child.kill().unwrap();
        }
        stdin.write_all(b"go on\n").unwrap();
        assert_eq!(Path::new(&next.hear()), directory.path().join("app"), "round {round}");
        before = Some(next);
    }
    assert!(before.unwrap().end().success());
}

/// Fails to record in one line, in the way that `part` names, and goes on.
fn go_on_without_a_recording(part: &str) {
    let mut files = Vec::new();
    match part {
        "a subscriber" => tracing::subscriber::set_global_default(tracing_subscriber::registry()).unwrap(),
        "no descriptors" => {
            let few = rustix::process::Rlimit { current: Some(32), maximum: Some(32) };
            rustix::process::setrlimit(rustix::process::Resource::Nofile, few).unwrap();
            while let Ok(file) = fs::File::open("/dev/null") {
                files.push(file);
            }
        }
        _ => {}
    }
    let recording = init(match part {
        "wrong sizes" => "app:3:4",
        "no memory" => "app:64TiB",
        "an unknown word" => "app-{host}",
        _ => "app:15:21",
    });
    files.clear();
    // The functions of the handle have no effect, and end nothing.
    recording.keep(true);
    recording.set_enabled(true);
    recording.set_filter(recording.filter());
    assert!(recording.recorder().is_none() && PERF.installed().is_none());
    tracing::info_span!("request").in_scope(|| tracing::info!("served"));
    say(recording.problem().unwrap());
    wait_for_parent();
}

#[test]
fn init_never_ends_a_program_and_its_handle_says_why_nothing_is_recorded() {
    let test = plays!(|part| go_on_without_a_recording(&part));
    let directory = directory();
    for (part, variable, reason) in [
        ("a subscriber", None, "the process has a global subscriber already"),
        ("no descriptors", None, "(os error 24)"),
        ("wrong sizes", None, "app:3:4"),
        ("no memory", None, "not enough memory"),
        ("an unknown word", None, "{host}, expected {pid} or {exe}"),
        ("a wrong filter", Some(("EVENTRING_FILTER", "loud=loud")), "`loud=loud`"),
        ("a wrong field", Some(("EVENTRING_REDACT", "pass*")), "`pass*`"),
        ("a wrong source", Some(("EVENTRING_INSTRUCTIONS", "abacus")), "`abacus`"),
        ("no directory", Some(("EVENTRING_DIR", "/proc/nowhere")), "/proc/nowhere"),
    ] {
        let variables: Vec<(&str, &str)> = variable.into_iter().collect();
        let mut talk = Talk::with(command_of(test, part, directory.path(), &variables));
        let problem = talk.hear();
        assert!(problem.starts_with("begin recording of `tracing`: ") && problem.contains(reason), "{part}: {problem}");
        assert!(talk.end().success(), "{part}");
    }
    assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 0);
}

#[test]
fn a_name_may_have_the_id_of_the_process_and_the_name_of_the_program() {
    let test = plays!({
        let _ = try_init_from_env().unwrap();
        say(PERF.installed().unwrap().path().unwrap().display());
        wait_for_parent();
    });
    let directory = directory();
    let variables = [("EVENTRING_PERF", "{exe}-{pid}:15:21")];
    let mut talk = Talk::with(command(test, directory.path(), &variables));
    let exe = std::env::current_exe().unwrap();
    let name = format!("{}-{}", exe.file_name().unwrap().to_str().unwrap(), talk.child.id());
    assert_eq!(Path::new(&talk.hear()), directory.path().join(name));
    assert!(talk.end().success());
}

#[test]
fn of_threads_that_initialise_at_the_same_time_one_succeeds() {
    let test = plays!({
        let start = std::sync::Barrier::new(4);
        let mut kinds: Vec<_> = std::thread::scope(|scope| {
            let threads = [(); 4].map(|()| {
                scope.spawn(|| {
                    start.wait();
                    RecorderLayer::try_from_env::<tracing_subscriber::Registry>()
                        .map_or_else(|error| format!("{:?}", error.kind()), |_| "made".into())
                })
            });
            threads.into_iter().map(|thread| thread.join().unwrap()).collect()
        });
        kinds.sort();
        say(kinds.join(" "));
    });
    let directory = directory();
    let mut talk = Talk::with(command(test, directory.path(), &[("EVENTRING_PERF", "app:15:21")]));
    assert_eq!(talk.hear(), "AlreadyInstalled AlreadyInstalled AlreadyInstalled made");
    assert!(talk.end().success());
}
