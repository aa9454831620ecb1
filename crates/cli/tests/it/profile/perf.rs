//! What Debian's `perf` says of the same threads at the same time.

use super::roles::play;
use super::sched::times;
use super::{Profiled, profiled, profiling};
use crate::fixtures::*;
use eventring_stress::missing;
use std::ffi::OsStr;

/// Runs `perf` with these words, and returns its output. Returns `None`, and says so, if it cannot be run here.
fn perf<W: AsRef<OsStr>>(words: impl IntoIterator<Item = W>) -> Option<Run> {
    if Command::new("perf").arg("version").output().is_err() {
        missing("the command perf (Debian: apt install linux-perf)");
        return None;
    }
    let mut command = Command::new("perf");
    command.args(words).env("NO_COLOR", "1");
    Some(finish(command))
}

/// Profiles this executable while `perf` looks at it, too. Returns the profile; `None`, and says so, if the kernel does
/// not tell everything here.
fn both(test: &str, part: &str, data: &Path, words: &[&str], options: &[&str]) -> Option<Profiled> {
    let file = data.with_extension("evc");
    let command = profiling(test, part, &file, options);
    // If two look at files, Linux marks the records of both as if they had build ids. Without this, perf reads them
    // wrongly.
    let more = ["--buildid-mmap", "-o"].map(OsStr::new).into_iter().chain([data.as_os_str(), OsStr::new("--")]);
    let words = words.iter().map(OsStr::new).chain(more);
    let mut arguments: Vec<&OsStr> = command.get_args().collect();
    let program = arguments.iter().position(|argument| *argument == "--").unwrap() + 1;
    arguments.splice(program..program, [OsStr::new("perf")].into_iter().chain(words));
    let mut watched = Command::new(command.get_program());
    watched.args(arguments);
    for (name, value) in command.get_envs() {
        match value {
            Some(value) => watched.env(name, value),
            None => watched.env_remove(name),
        };
    }
    perf(["version"])?;
    let profiled = profiled(&finish(watched), &file);
    if profiled.summary["missing"] != json!([]) {
        missing(format_args!("root, tracefs and perf_event_open: {}", profiled.summary["missing"]));
        return None;
    }
    Some(profiled)
}

/// Returns the nanoseconds that a thread ran, waited for a processor and slept, as `perf sched` has them.
fn of_perf(data: &Path, thread: u64) -> Option<[u64; 3]> {
    let said = perf(["sched", "timehist", "-i", argument(data), "--state"])?;
    let (mut times, mut before) = ([0.0; 3], None);
    let of_thread = |line: &&str| line.contains(&format!("[{thread}/")) || line.contains(&format!("[{thread}]"));
    let rows = said.out.lines().filter(of_thread).map(|line| line.rsplit_once(']').unwrap().1.split_whitespace());
    let mut rows: Vec<Vec<&str>> = rows.map(Iterator::collect).collect();
    // The last sleep is behind what is compared.
    let is_sleep = |row: &Vec<&str>| row.last() == Some(&"S");
    rows.truncate(rows.iter().rposition(is_sleep).map_or(0, |last| last + 1));
    for words in rows {
        let [wait, delay, ran, state] = words[..] else { panic!("{words:?}") };
        let [wait, delay, ran] = [wait, delay, ran].map(|number| number.parse::<f64>().unwrap());
        times[0] += ran;
        // The wait before has the reason for which the thread had left its processor.
        times[1] += if before == Some("R") { wait } else { delay };
        // Before the first row there is no wait.
        times[2] += if before == Some("R") { 0.0 } else { (wait - delay).max(0.0) };
        before = Some(state);
    }
    assert!(times[0] > 0.0, "{said:?}");
    Some(times.map(|millis| (millis * 1e6) as u64))
}

#[test]
fn times_agree_with_those_of_perf_sched() {
    let test = plays!(|part| play(&part));
    let (_directory, [data]) = places(["p.data"]);
    let Some(profiled) = both(test, "times", &data, &["sched", "record"], &["--sched"]) else { return };
    let [thread, end, ..] = profiled.numbers("schedstat")[..] else { panic!("{}", profiled.said) };
    let ours = times(&profiled, thread, end);
    let Some(theirs) = of_perf(&data, thread) else { return };
    println!("ran, waited and slept: {ours:?} ns, and {theirs:?} ns by perf sched");
    for (ours, theirs) in ours.into_iter().zip(theirs) {
        assert!(ours.abs_diff(theirs) * 20 <= ours.max(theirs), "{ours} ns, and {theirs} ns by perf sched");
    }
}

const FUNCTIONS: [&str; 3] = ["share_of_ten", "share_of_six", "share_of_four"];
#[test]
fn shares_of_functions_agree_with_those_of_perf_record() {
    let test = plays!(|part| play(&part));
    let (_directory, [data]) = places(["p.data"]);
    let words = ["record", "-q", "-F", "997", "-e", "cpu-clock"];
    let Some(profiled) = both(test, "shares", &data, &words, &["--stacks"]) else { return };
    let [thread] = profiled.numbers("thread")[..] else { panic!("{}", profiled.said) };
    let folded = run!("export", &data.with_extension("evc"), "--format", "folded", "--weight", "cpu");
    let period = 1_000_000_000 / 997;
    let ours = FUNCTIONS.map(|function| {
        let lines = folded.out.lines().filter_map(|line| line.rsplit_once(' '));
        let of_function = lines.filter(|(stack, _)| stack.rsplit(';').next() == Some(function));
        of_function.map(|(_, nanos)| nanos.parse::<u64>().unwrap()).sum::<u64>() as f64 / f64::from(period)
    });
    let Some(script) = perf(["script", "-i", argument(&data), "-F", "tid,ip,sym"]) else { return };
    let theirs = FUNCTIONS.map(|function| {
        let of_function = |line: &&str| {
            let mut words = line.split_whitespace();
            words.next() == Some(&thread.to_string()) && words.last() == Some(function)
        };
        script.out.lines().filter(of_function).count() as f64
    });
    let all = [ours.iter().sum::<f64>(), theirs.iter().sum::<f64>()];
    println!("samples of {FUNCTIONS:?}: {ours:?}, and {theirs:?} by perf record");
    assert!(all.iter().all(|all| *all > 100.0), "{all:?} samples are too few for this test");
    for (ours, theirs) in ours.into_iter().zip(theirs) {
        let [share, other] = [ours / all[0], theirs / all[1]];
        // Four times the standard error of the difference: one test in ten thousand fails by chance.
        let both = (ours + theirs) / (all[0] + all[1]);
        let error = 4.0 * (both * (1.0 - both) * (1.0 / all[0] + 1.0 / all[1])).sqrt();
        assert!((share - other).abs() <= error, "{share} and {other} differ by more than {error}");
    }
}
