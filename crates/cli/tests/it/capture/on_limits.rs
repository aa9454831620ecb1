//! `eventring capture --on` keeps to its limits of files and bytes, and to the place for its events; rates and
//! percentiles fire when they pass their limit.

use crate::fixtures::*;
use crate::program::now_nanos;
use crate::triggers::{SLOW, checked, count, result, said, slow_spans, wait_for, watch_before, watching};
use eventring::tracing::try_init;

/// Returns what a watch of slow spans says, and which numbers of slow spans the program says are possible.
fn watch_slow(test: &str, options: &[&str]) -> (TempDir, Value, std::ops::RangeInclusive<u64>) {
    let (directory, [ring, names]) = places(["ring", "{n}-{span}.evc"]);
    let all = [&["--on", SLOW, "--debounce", "0", "--after", "50ms", "-o", argument(&names)], options].concat();
    let ended = finish(watching(test, "slow", &ring, &all));
    let found = (result(&ended), said(&ended));
    (directory, found.0, found.1)
}

/// Returns the number of captures in a directory.
fn captures(directory: &Path) -> usize {
    let paths = fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path());
    paths.filter(|path| path.extension().is_some_and(|it| it == "evc")).count()
}

#[test]
fn no_more_files_than_allowed_are_written_and_the_others_are_counted() {
    let test = plays!(slow_spans());
    let (directory, result, truth) = watch_slow(test, &["--max-files", "3"]);
    assert_eq!((count(&result, "fired"), count(&result, "debounced")), (3, 0), "{result:#}");
    assert!(truth.contains(&(3 + count(&result, "suppressed"))), "{truth:?}: {result:#}");
    result["files"].list().iter().for_each(|file| drop(checked(file)));
    assert_eq!((result["files"].list().len(), captures(directory.path())), (3, 3));
}

#[test]
fn no_file_is_begun_when_the_files_have_their_largest_size_even_if_it_waits_already() {
    let test = plays!(slow_spans());
    let sizes = |result: &Value| -> Vec<u64> {
        result["files"].list().iter().map(|file| checked(file).1["bytes"].number()).collect()
    };
    let (directory, all, truth) = watch_slow(test, &["--max-bytes", "1G"]);
    let sizes_of_all = sizes(&all);
    assert!(truth.contains(&(sizes_of_all.len() as u64)) && count(&all, "suppressed") == 0, "{truth:?}: {all:#}");
    assert_eq!(captures(directory.path()), sizes_of_all.len());

    // The first files of two runs are nearly equal. The limit allows some of them.
    let limit = sizes_of_all[0] * 5 / 2;
    let (directory, some, truth) = watch_slow(test, &["--max-bytes", &limit.to_string()]);
    let sizes = sizes(&some);
    let before_the_last: u64 = sizes[..sizes.len() - 1].iter().sum();
    assert!(before_the_last < limit && sizes.iter().sum::<u64>() >= limit, "{limit}: {sizes:?}");
    assert_eq!((count(&some, "fired"), captures(directory.path())), (sizes.len() as u64, sizes.len()), "{some:#}");
    assert!(truth.contains(&(count(&some, "fired") + count(&some, "suppressed"))), "{truth:?}: {some:#}");
}

#[test]
fn a_watch_without_room_for_the_events_says_what_its_files_lack() {
    let test = plays!({
        let _recording = try_init(format!("{}:18:24", child::place().display())).unwrap();
        let mut random = 1_u64;
        for _ in 0..30_000 {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            info_span!("random", random).in_scope(|| ());
        }
        std::process::abort();
    });
    let (_directory, [ring, names]) = places(["ring", "{n}.evc"]);
    assert_eq!(finish(play(test, "die", &ring)).code, None);
    // A limit for files, also for those in memory, stands in for a full disk.
    let mut command = Command::new("sh");
    command.args(["-c", "trap '' XFSZ; ulimit -f 64; exec \"$@\"", "sh", PROGRAM, "capture", argument(&ring)]);
    command.args(["--on", "death", "--json", "-o", argument(&names)]);
    let ended = finish(command);
    assert!(ended.code.is_some_and(|code| code != 0) && ended.err.contains("File too large"), "{ended:?}");
    let result = ended.said();
    assert!(result["problems"].to_string().contains("File too large"), "{result:#}");
    assert_eq!(count(&result, "fired"), 1);
    for file in result["files"].list() {
        assert!(file["shortfall"].text().contains("the capture has failed"), "{file:#}");
        assert!(count(file, "window_kept_ns") < count(file, "window_asked_ns"), "{file:#}");
    }
}

/// Returns the number of files in a directory that a process has open, with or without a name.
fn open_files(process: u32, directory: &Path) -> usize {
    let open = fs::read_dir(format!("/proc/{process}/fd")).unwrap();
    open.filter_map(|entry| fs::read_link(entry.ok()?.path()).ok()).filter(|path| path.starts_with(directory)).count()
}

#[test]
fn the_events_lie_in_the_spool_directory_and_nothing_stays_there() {
    let test = plays!({
        let _recording = try_init(format!("{}:17:23", child::place().display())).unwrap();
        (0..1000).for_each(|n| info_span!("short", n).in_scope(|| ()));
        say("recorded");
        child::wait_for_parent();
    });
    for has_spool in [true, false] {
        let (directory, spool) = (directory(), directory());
        let (ring, names) = (place(&directory, "ring"), place(&directory, "{n}-{span}.evc"));
        let spooling = if has_spool { &["--spool", argument(spool.path())][..] } else { &[] };
        let options = ["--on", "signal", "--after", "50ms", "-o", argument(&names)];
        let live = watch_before(&ring, &[&options[..], spooling].concat());
        let mut talk = Talk::told(test, "short", &ring, "recorded");
        signal(&live.child, Signal::USR1);
        assert_eq!(wait_for(&place(&directory, "1-signal.evc"))["reason"], "signal");
        assert_eq!(open_files(live.child.id(), spool.path()) > 0, has_spool);
        assert_eq!(fs::read_dir(spool.path()).unwrap().count(), 0);
        assert!(talk.end().success());
        let result = result(&live.end());
        let (_, manifest) = checked(&result["files"][0]);
        assert!(count(&manifest, "events") >= 4000, "{manifest:#}");
        assert_eq!(fs::read_dir(spool.path()).unwrap().count(), 0);
    }
}

/// Makes spans until the function says that it is enough, or the parent has closed stdin.
fn until(name: &str, mut make: impl FnMut(), mut is_enough: impl FnMut() -> bool) {
    say(format!("{name} {}", now_nanos()));
    while !is_enough() {
        make();
    }
}

fn parent_is_gone() -> impl FnMut() -> bool {
    let gone = Arc::new(std::sync::OnceLock::new());
    let to_set = gone.clone();
    thread::spawn(move || {
        let _ = std::io::stdin().read_to_end(&mut Vec::new());
        let _ = to_set.set(());
    });
    move || gone.get().is_some()
}

/// Returns the time after a number in what a child says.
fn time(words: &str) -> u64 {
    words.split_once(' ').unwrap().1.parse().unwrap()
}

/// A program that makes spans `beat` and `steady` for two seconds, then only `steady` until its parent is gone. In the
/// second part, the spans `query` take longer.
fn beats() {
    let _recording = try_init(format!("{}:17:23", child::place().display())).unwrap();
    let begin = Instant::now();
    let pause = || thread::sleep(Duration::from_millis(1));
    let steady = || info_span!("steady").in_scope(|| ());
    let first = || {
        info_span!("beat").in_scope(|| ());
        (0..10).for_each(|_| info_span!("query").in_scope(|| ()));
        steady();
        pause();
    };
    until("first", first, || begin.elapsed() > Duration::from_secs(2));
    let second = || {
        info_span!("query").in_scope(|| thread::sleep(Duration::from_millis(120)));
        (0..20).for_each(|_| steady());
    };
    until("second", second, parent_is_gone());
}

/// Watches [`beats`] with a condition that the second part fulfils, and with the same of a name that never changes.
fn fires_in_the_second_part(test: &str, condition: &str, control: &str) {
    let (directory, [ring, names]) = places(["ring", "{n}-{span}.evc"]);
    let options = ["--on", condition, "--on", control, "--debounce", "0", "--after", "50ms", "-o", argument(&names)];
    let live = watch_before(&ring, &options);
    let mut talk = Talk::start(test, "beats", &ring);
    let begun = [time(&talk.hear()), time(&talk.hear())];
    let manifest = wait_for(&place(&directory, "1-rate.evc"));
    // It holds on, and does not fire again.
    thread::sleep(Duration::from_millis(500));
    assert!(talk.end().success());
    let result = result(&live.end());
    let reasons: Vec<_> = result["files"].list().iter().map(|file| file["reason"].as_str()).collect();
    assert_eq!((count(&result, "fired"), reasons), (1, vec![Some(condition)]), "{result:#}");
    checked(&result["files"][0]);
    assert!(count(&manifest, "epoch_nanos") >= begun[1], "{begun:?}: {manifest:#}");
}

#[test]
fn a_rate_that_falls_below_its_limit_fires_once() {
    let test = plays!(beats());
    fires_in_the_second_part(test, "rate(span=beat,1s)<3/s", "rate(span=steady,1s)<3/s");
}

#[test]
fn a_percentile_that_rises_above_its_limit_fires_once() {
    let test = plays!(beats());
    fires_in_the_second_part(test, "p99(span=query,1s)>100ms", "p99(span=steady,1s)>100ms");
}

#[test]
fn each_span_that_was_open_between_two_looks_fires_as_open() {
    let test = plays!(slow_spans());
    let (_directory, [ring, names]) = places(["ring", "{n}-{span}.evc"]);
    let options = ["--on", "span=slow open>20ms", "--debounce", "0", "--after", "50ms", "-o", argument(&names)];
    let ended = finish(watching(test, "slow", &ring, &options));
    let (result, truth) = (result(&ended), said(&ended));
    assert!(truth.contains(&count(&result, "fired")), "{truth:?}: {result:#}");
    let mut seen = BTreeSet::new();
    for file in result["files"].list() {
        let (_, manifest) = checked(file);
        assert!(seen.insert(manifest["span"]["id"].text().to_owned()), "{manifest:#}");
        let what = manifest["what"].text();
        assert!(
            what.starts_with("span `slow` is open for ") || what.starts_with("span `slow` was open for "),
            "{what}"
        );
    }
}
