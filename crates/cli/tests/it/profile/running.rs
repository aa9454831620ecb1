//! The rings of programs that nobody names, and profiles that end before their program.

use super::roles::play;
use crate::fixtures::*;
use crate::program::program_in;

pub const FAMILY: &str =
    test_name!("without_a_name_the_rings_of_the_program_and_of_its_children_are_captured_and_removed");

/// Profiles a part without naming its ring. The rings of the profile lie in `rings`.
fn profiled(test: &str, part: &str, place: &Path, rings: &Path, file: &Path) -> Run {
    let played = child::play(test, part, place);
    let mut command = Command::new(PROGRAM);
    command.args(["profile", "-o", argument(file), "--sched", "--"]);
    command.arg(played.get_program()).args(played.get_args());
    command.envs(played.get_envs().filter_map(|(name, value)| Some((name, value?))));
    command
        .env_remove("EVENTRING_KEEP")
        .env_remove("EVENTRING_FILTER")
        .env("NO_COLOR", "1")
        .env("EVENTRING_DIR", rings);
    finish(command)
}

/// Returns how many processes have begun, as the capture says.
fn begun(file: &Path) -> usize {
    run!("watch", file, "--json").json_lines().iter().filter(|line| line.to_string().contains("\"begun\"")).count()
}

#[test]
fn without_a_name_the_rings_of_the_program_and_of_its_children_are_captured_and_removed() {
    if let Some(part) = part() {
        play(&part);
    }
    let (elsewhere, rings) = (directory(), directory());
    let file = rings.path().join("p.evc");
    let ended = profiled(FAMILY, "family", &place(&elsewhere, "parent"), rings.path(), &file);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert!(ended.err.contains("(the program has ended)"), "{ended:?}");
    assert_eq!(begun(&file), 2, "{ended:?}");
    let left = |directory: &Path| std::fs::read_dir(directory).unwrap().count();
    assert_eq!((left(elsewhere.path()), left(rings.path())), (0, 1), "rings were left: {ended:?}");
}

#[test]
fn a_ring_of_a_program_that_ends_at_once_is_found_where_rings_lie() {
    let test = plays!(|part| play(&part));
    let rings = directory();
    let file = rings.path().join("p.evc");
    let ended = profiled(test, "quick", &place(&rings, "quick"), rings.path(), &file);
    assert_eq!((ended.code, begun(&file)), (Some(0), 1), "{ended:?}");
    assert_eq!(std::fs::read_dir(rings.path()).unwrap().count(), 1, "rings were left: {ended:?}");
    let without = rings.path().join("none.evc");
    let words = ["profile", "-o", argument(&without), "--sched", "--", "true"];
    let none = finish(program_in(rings.path(), &words));
    assert!(none.err.contains("no ring of the program was found; if it has one, name it"), "{none:?}");
}

const HALF_MADE: &str = test_name!("a_shard_that_is_being_made_is_no_ring_of_its_own");

#[test]
fn a_shard_that_is_being_made_is_no_ring_of_its_own() {
    if let Some(part) = part() {
        play(&part);
    }
    let directory = directory();
    let mut talk = Talk::told(HALF_MADE, "half made", &place(&directory, "shards"), "ready");
    let file = place(&directory, "p.evc");
    let process = format!("pid:{}", talk.child.id());
    let words = ["profile", &process, "-o", argument(&file), "--sched", "-d", "500ms"];
    let ended = finish(program_in(directory.path(), &words));
    assert_eq!((ended.code, begun(&file)), (Some(0), 1), "{ended:?}");
    // The recorder has two or more, and the profile one.
    let names =
        std::fs::read_dir(directory.path()).unwrap().map(|file| file.unwrap().file_name().into_string().unwrap());
    let of_recorder =
        names.filter(|name| name.starts_with("shards") && !name.contains('~') && !name.ends_with(".now")).count();
    assert!(of_recorder >= 2 && ended.err.contains(&format!(" from {} rings ", of_recorder + 1)), "{ended:?}");
    assert!(talk.end().success());
}

#[test]
fn a_shard_that_is_named_beside_its_recorder_is_captured_once() {
    let (_directory, [ring, file]) = places(["shards", "p.evc"]);
    let mut talk = Talk::start(HALF_MADE, "half made", &ring);
    talk.hear();
    let shard = ring.with_extension("1");
    let events = |names: &[&Path]| {
        let names = names.iter().map(|name| argument(name));
        let options = ["capture", "-f", "-d", "200ms", "-o", argument(&file), "--json"];
        let captured = run(&options.into_iter().chain(names).collect::<Vec<_>>());
        captured.json()["events"].as_u64().unwrap_or_else(|| panic!("{captured:?}"))
    };
    let once = events(&[&ring]);
    assert!(once > 0);
    assert_eq!([events(&[&ring, &shard]), events(&[&shard, &ring])], [once; 2]);
    assert!(talk.end().success());
}

#[test]
fn a_running_program_is_profiled_with_its_ring_until_the_time_is_over() {
    let test = plays!(|part| play(&part));
    let directory = directory();
    let mut talk = Talk::told(test, "waits", &place(&directory, "waits"), "ready");
    let file = place(&directory, "p.evc");
    let process = format!("pid:{}", talk.child.id());
    let words = ["profile", &process, "-o", argument(&file), "--sched", "-d", "500ms"];
    let ended = finish(program_in(directory.path(), &words));
    assert_eq!((ended.code, begun(&file)), (Some(0), 1), "{ended:?}");
    assert!(ended.err.contains("(the time was over)"), "{ended:?}");
    assert!(talk.end().success());
}

#[test]
fn a_profile_ends_when_its_time_is_over_however_many_samples_it_takes() {
    if !eventring_stress::users::can_be_played() {
        return;
    }
    let (directory, [file]) = places(["p.evc"]);
    let options = ["--stacks", "--hz", "50000", "-d", "500ms"];
    let mut busy = Command::new("sh").args(["-c", "while :; do :; done"]).spawn().unwrap();
    let process = format!("pid:{}", busy.id());
    let words = [&["profile", &process, "-o", argument(&file)], &options[..]].concat();
    let mut profile = Live::from_command(program_in(directory.path(), &words));
    let until = Instant::now() + Duration::from_secs(60);
    wait_while(|| profile.child.try_wait().unwrap().is_none() && Instant::now() < until);
    let has_ended = profile.child.try_wait().unwrap().is_some();
    let _ = profile.child.kill();
    kill(&mut busy);
    assert!(has_ended, "{:?}", profile.end());
}

#[test]
fn a_terminal_that_is_closed_ends_a_profile_as_an_interrupt_does() {
    let (directory, [file]) = places(["p.evc"]);
    let mut sleeper = Command::new("sleep").arg("60").spawn().unwrap();
    let process = format!("pid:{}", sleeper.id());
    let words = ["profile", &process, "-o", argument(&file), "--sched"];
    let mut profile = Live::from_command(program_in(directory.path(), &words));
    while !std::fs::metadata(&file).is_ok_and(|file| file.len() > 0) {
        assert_eq!(profile.child.try_wait().unwrap(), None);
        std::thread::sleep(Duration::from_millis(10));
    }
    let id = Pid::from_raw(profile.child.id() as i32).unwrap();
    kill_process(id, Signal::HUP).unwrap();
    let ended = profile.end();
    kill(&mut sleeper);
    assert!(ended.code == Some(0) && ended.err.contains("(interrupted)"), "{ended:?}");
    run!("watch", &file, "--json").ends(0);
}

#[test]
fn system_calls_alone_are_recorded_with_the_switches_that_they_need() {
    let (directory, [file]) = places(["p.evc"]);
    let profile = |options: &[&str]| {
        let begin = ["profile", "-f", "-o", argument(&file), "--json"];
        let words = [&begin[..], options, &["--", "sh", "-c", "sleep 0.05; sleep 0.05"]].concat();
        finish(program_in(directory.path(), &words))
    };
    let said = profile(&["--syscalls"]).json();
    if said["missing"] != serde_json::json!([]) {
        return eventring_stress::missing(format_args!("root, tracefs and perf_event_open: {}", said["missing"]));
    }
    assert!(said["switches"].as_u64() > Some(0) && said["syscalls"].as_u64() > Some(0), "{said}");
    let nothing = profile(&["--stacks", "--hz", "0"]);
    assert!(nothing.code == Some(2) && nothing.err.contains("records nothing; add --sched"), "{nothing:?}");

    // A capture that was cut is said to be cut, and not to have been recorded without switches.
    let whole = std::fs::read(&file).unwrap();
    let cut = place(&directory, "cut.evc");
    std::fs::write(&cut, &whole[..whole.len() * 3 / 5]).unwrap();
    run!("export", &cut, "--format", "folded", "--weight", "blocked", "-o", "-")
        .fails(6, "the capture is not whole, as said above");
    run!("why", &cut).fails(6, "no span has ended");
}

#[test]
fn top_says_what_the_kernel_says_of_threads_in_spans_while_a_profile_is_recorded() {
    let test = plays!(|part| play(&part));
    if !eventring_stress::users::can_be_played() {
        return;
    }
    let (_directory, [ring, file, sched]) = places(["hung", "p.evc", "hung-sched"]);
    let mut talk = Talk::start(test, "hang", &ring);
    talk.hear();
    let blocked = |answer: &serde_json::Value| {
        let late = answer["names"].list().iter().find(|row| row["name"] == "late").cloned();
        late.unwrap_or_else(|| panic!("{answer:#}"))["blocked_ns"].clone()
    };
    let alone = run!("top", &ring, "--once", "--json").json();
    assert!(blocked(&alone).is_null(), "{alone:#}");
    let profile = live!("profile", &ring, "-o", &file, "--sched");
    wait_while(|| !sched.exists());
    // The span sleeps for a quarter of a second, again and again. Of those that began before the profile, nothing is known.
    let look = |_| run!("top", &ring, &sched, "--once", "--json").json();
    let is_blocked = |answer: &serde_json::Value| blocked(answer).as_u64() > Some(100_000_000);
    let beside = (0..10).map(look).find(is_blocked).expect("the span is blocked");
    profile.interrupt();
    profile.end().fails(0, "(interrupted)");
    crate::ask::schemas::check(&[("top", alone), ("top", beside)]);
    assert!(talk.end().success());
}
