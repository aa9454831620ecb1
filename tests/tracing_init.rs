//! One line sets up recording: in code, from the environment, or with layers. If the rings cannot be made, the
//! program goes on.
#![cfg(feature = "tracing")]

mod child;
mod reference;

use child::{Talk, part, place, play, say, wait_for_parent};
use eventring::tracing::{
    Counter, PERF, PerfContent, PerfReader, RecorderLayer, SetupErrorKind, init, try_init, try_init_from_env,
};
use std::fs;
use std::path::Path;
use std::process::Command;
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
    let mut command = play(test, "service", &directory.join("app"));
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

fn directory() -> tempfile::TempDir {
    tempfile::tempdir_in("/dev/shm").unwrap()
}

const ALL: [&str; 4] =
    ["request user.name=kim user.password=hunter2", "event message=details token=17", "event message=served", "seen 1"];
const FROM_INFO: [&str; 3] = [ALL[0], ALL[2], ALL[3]];

#[test]
fn one_line_records_what_is_at_level_info_or_what_the_environment_says() {
    let test = "one_line_records_what_is_at_level_info_or_what_the_environment_says";
    if part().is_some() {
        return serve(|| {
            init("app:15:21");
            Ok(true)
        });
    }
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
}

#[test]
fn a_service_is_switched_on_by_its_environment_and_otherwise_costs_nothing() {
    let test = "a_service_is_switched_on_by_its_environment_and_otherwise_costs_nothing";
    if part().is_some() {
        return serve(|| {
            let recording = try_init_from_env().map_err(|error| error.to_string())?;
            assert_eq!(recording.is_some(), tracing::enabled!(tracing::Level::ERROR));
            Ok(recording.is_some())
        });
    }
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
    // `password;token`.
    let filters = ["inof", " ,", "6"].map(|value| ("EVENTRING_FILTER", value));
    let redacted =
        ["password;token", "pass*", "\"password\"", "password:token"].map(|value| ("EVENTRING_REDACT", value));
    for (variable, value) in filters.into_iter().chain(redacted) {
        let (printed, recorded) = outcome(&[("EVENTRING_PERF", "app"), (variable, value)]);
        assert!(
            printed.contains(&format!("`{value}`")) && printed.contains(variable) && recorded.is_empty(),
            "{printed}"
        );
    }
}

#[test]
fn a_program_with_layers_of_its_own_is_switched_on_by_its_environment() {
    let test = "a_program_with_layers_of_its_own_is_switched_on_by_its_environment";
    if part().is_some() {
        return serve(|| {
            let layer = RecorderLayer::try_from_env().map_err(|error| error.to_string())?;
            let is_on = layer.is_some();
            let filter = "debug".parse::<eventring::tracing::TargetFilter>().unwrap();
            let stack = tracing_subscriber::registry().with(layer.map(|layer| layer.with_filter(filter)));
            tracing::subscriber::set_global_default(stack).unwrap();
            Ok(is_on)
        });
    }
    let directory = directory();
    let outcome = |variables: &[(&str, &str)]| outcome(test, directory.path(), variables);
    assert_eq!(outcome(&[]), ("off".into(), vec![]));
    let (printed, recorded) = outcome(&[("EVENTRING_PERF", "app:15:21"), ("EVENTRING_REDACT", "user.password")]);
    assert_eq!((printed.as_str(), recorded.len()), ("recording", ALL.len()));
    assert_eq!(recorded[0], "request user.name=kim user.password=<redacted>");
}

#[test]
fn a_layer_from_the_environment_has_the_environments_filter_for_itself() {
    let test = "a_layer_from_the_environment_has_the_environments_filter_for_itself";
    if part().is_some() {
        return serve(|| {
            let layer = RecorderLayer::try_from_env().map_err(|error| {
                assert_eq!(error.kind(), SetupErrorKind::Filter);
                assert!(PERF.installed().is_none());
                error.to_string()
            })?;
            let stack = tracing_subscriber::registry()
                .with(layer)
                .with(tracing_subscriber::fmt::layer().with_writer(std::io::sink));
            tracing::subscriber::set_global_default(stack).unwrap();
            // The filter belongs to the recorder's layer alone. Other layers still see every level.
            assert_eq!(LevelFilter::current(), LevelFilter::TRACE);
            Ok(true)
        });
    }
    let directory = directory();
    let outcome = |variables: &[(&str, &str)]| outcome(test, directory.path(), variables);
    let (printed, recorded) = outcome(&[("EVENTRING_PERF", "app:15:21")]);
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
    let test = "rings_are_kept_on_request_also_those_that_are_created_later";
    if let Some(part) = part() {
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
        return say("done");
    }
    for (part, remaining) in [("keeps", vec!["app", "app.1"]), ("removes", vec![])] {
        let directory = directory();
        let mut command = play(test, part, &directory.path().join("app"));
        VARIABLES.iter().for_each(|variable| {
            command.env_remove(variable);
        });
        let mut talk = Talk::with({
            command.env("EVENTRING_DIR", directory.path());
            command
        });
        assert_eq!(talk.hear(), "done");
        assert!(talk.end().success());
        let files = fs::read_dir(directory.path()).unwrap();
        let mut names: Vec<String> = files.map(|file| file.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        assert_eq!(names, remaining, "{part}");
    }
}

#[test]
fn a_program_whose_rings_cannot_be_created_gets_the_reason_and_continues() {
    let test = "a_program_whose_rings_cannot_be_created_gets_the_reason_and_continues";
    if part().is_some() {
        return serve(|| {
            let error = try_init(place()).unwrap_err();
            assert_eq!(error.kind(), SetupErrorKind::Recorder);
            assert!(std::error::Error::source(&error).is_some());
            // Nothing was installed: spans are off, and the program can still set another subscriber.
            assert!(PERF.installed().is_none() && !tracing::enabled!(tracing::Level::ERROR));
            tracing::subscriber::set_global_default(tracing_subscriber::registry()).unwrap();
            Err(error.to_string())
        });
    }
    let directory = directory();
    // Another process owns the name.
    let mut first = Talk::with(command(
        "one_line_records_what_is_at_level_info_or_what_the_environment_says",
        directory.path(),
        &[],
    ));
    assert_eq!((first.hear(), first.hear()), ("recording".into(), "served".into()));
    let mut talk = Talk::with(command(test, directory.path(), &[]));
    let printed = talk.hear();
    assert_eq!(talk.hear(), "served");
    assert!(talk.end().success());
    let place = directory.path().join("app");
    assert!(
        printed.starts_with("begin recording of `tracing`: ") && printed.contains(place.to_str().unwrap()),
        "{printed}"
    );
    assert!(printed.contains(&format!("process {}", first.child.id())), "{printed}");
    // The first process is not affected.
    assert_eq!(messages(&mut PerfReader::open(&place).unwrap()), FROM_INFO);
    assert!(first.end().success());

    // There is no directory of that name, and it cannot be made.
    fs::write(directory.path().join("file"), "").unwrap();
    let mut other = command(test, &directory.path().join("file"), &[]);
    let mut talk = Talk::with({
        other.env("EVENTRING_DIR", directory.path());
        other
    });
    let printed = talk.hear();
    assert!(
        printed.contains(&format!("{}/file", directory.path().display()))
            && talk.hear() == "served"
            && talk.end().success(),
        "{printed}"
    );
}

#[test]
fn init_ends_a_program_that_cannot_go_on_without_with_the_same_message() {
    let test = "init_ends_a_program_that_cannot_go_on_without_with_the_same_message";
    if part().is_some() {
        init("app:3:4");
        return say("it went on");
    }
    let directory = directory();
    let output = command(test, directory.path(), &[]).output().unwrap();
    let err = String::from_utf8_lossy(&output.stderr);
    assert!(
        !output.status.success() && err.contains("begin recording of `tracing`: ") && err.contains("app:3:4"),
        "{err}"
    );
}

#[test]
fn of_threads_that_initialise_at_the_same_time_one_succeeds() {
    const TEST: &str = "of_threads_that_initialise_at_the_same_time_one_succeeds";
    if part().is_some() {
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
        return;
    }
    let directory = tempfile::tempdir_in("/dev/shm").unwrap();
    let mut talk = Talk::with(command(TEST, directory.path(), &[("EVENTRING_PERF", "app:15:21")]));
    assert_eq!(talk.hear(), "AlreadyInstalled AlreadyInstalled AlreadyInstalled made");
    assert!(talk.end().success());
}
