//! Programs that end before a reader has read all their events. The events that the capture or the watch has missed
//! are counted exactly.

use crate::fixtures::*;
use std::sync::mpsc::channel;

fn log(recorder: &PerfRecorder, events: u64) {
    in_recorder(recorder.clone(), || {
        (0..events).for_each(|n| info!(n, "something"));
    });
}

/// Plays a program. It records in shard 0 until its parent sends a line. Then it records in three new shards, prints
/// how many seqnos each shard has handed out, and exits.
fn program() -> ! {
    let builder = spans_in(child::place()).shifts(15, 21).tables_shift(16).shards(8);
    // Nothing drops the recorder.
    let recorder: &'static PerfRecorder = Box::leak(Box::new(builder.build().unwrap()));
    let (logged, has_logged) = channel::<()>();
    thread::spawn(move || {
        log(recorder, 5);
        drop(logged);
        // The recorder would record the end of this thread as one more event. So the thread never ends.
        loop {
            thread::park();
        }
    });
    let _ = has_logged.recv();
    say("recording");
    wait_for_parent();
    let (mut stay, mut threads) = (Vec::new(), Vec::new());
    for _ in 0..3 {
        let (logged, has_logged) = channel::<()>();
        let (may_go, permission) = channel::<()>();
        threads.push(thread::spawn(move || {
            log(recorder, 100);
            drop(logged);
            let _ = permission.recv();
        }));
        let _ = has_logged.recv();
        stay.push(may_go);
    }
    drop(stay);
    threads.into_iter().for_each(|thread| thread.join().unwrap());
    let handed_out: Vec<String> = recorder.stats().shards.iter().map(|shard| shard.last_seqno.to_string()).collect();
    say(handed_out.join(" "));
    std::process::exit(0);
}

/// Starts the program, and then `look`, which is a capture or a watch of the program's rings. If `is_stopped` is true,
/// a signal stops `look` while the program makes its new shards and exits. Returns how many seqnos each shard has
/// handed out, and what `look` has printed.
fn look_at(test: &str, place: &Path, look: &[&str], is_there: impl Fn(), is_stopped: bool) -> (Vec<u64>, program::Run) {
    let mut talk = Talk::told(test, "program", place, "recording");
    let live = Live::start(look);
    is_there();
    let pid = Pid::from_child(&live.child);
    if is_stopped {
        kill_process(pid, Signal::STOP).unwrap();
    }
    drop(talk.child.stdin.take());
    let handed_out = talk.hear().split(' ').map(|count| count.parse().unwrap()).collect();
    assert!(talk.end().success());
    assert!(!place.exists());
    if is_stopped {
        kill_process(pid, Signal::CONT).unwrap();
    }
    (handed_out, live.end())
}

fn wait_until(is: impl Fn() -> bool) {
    wait_while(|| !is());
}

#[test]
fn events_that_a_late_capture_misses_are_counted_exactly() {
    let test = plays!(program());
    let (_directory, [place, file]) = places(["ring", "t.evc"]);
    let arguments = ["capture", argument(&place), "-o", argument(&file), "--json", "--strict"];
    // The capture writes its first bytes when it has opened the ring. So a file of more than 500 bytes shows that the
    // ring is open.
    let is_there = || wait_until(|| fs::metadata(&file).is_ok_and(|file| file.len() > 500));
    let (handed_out, ended) = look_at(test, &place, &arguments, is_there, true);
    assert_eq!(ended.code, Some(16), "{ended:?}");
    let captured = ended.said();
    let missed: u64 = handed_out[1..].iter().sum();
    assert!(missed > 300);
    assert_eq!((number(&captured["events"]), number(&captured["lost"])), (handed_out[0], missed), "{captured}");
    assert_eq!(number(&captured["lost_by_cause"]["never_opened"]), missed);
    assert_eq!((&captured["reason"], captured["problems"].list().len()), (&"writers_ended".into(), 0));
    for (ring, handed_out) in captured["rings"].list()[1..].iter().zip(&handed_out[1..]) {
        assert_eq!((number(&ring["lost"]), number(&ring["last_seqno"])), (*handed_out, *handed_out));
    }
    let summary = run!("summary", &file, "--json", "--strict").ends(16);
    assert_eq!(number(&summary.said()["lost"]), missed);
    let lines = exported(&file);
    let losses = lines.iter().filter(|line| line["type"] == "loss");
    let losses: Vec<u64> =
        losses.filter(|loss| loss["cause"] == "never_opened").map(|loss| number(&loss["count"])).collect();
    assert_eq!(losses, handed_out[1..]);
}

#[test]
fn events_that_a_late_watch_misses_are_counted_exactly() {
    let test = plays!(program());
    let (_directory, [place]) = places(["ring"]);
    let out = ["watch", argument(&place), "--json", "--full", "--from", "oldest", "--strict"];
    // In this time the watch opens shard 0. Then it is stopped, so it misses the shards that the program makes
    // afterwards.
    let is_there = || thread::sleep(Duration::from_millis(300));
    let (handed_out, ended) = look_at(test, &place, &out, is_there, true);
    let missed: u64 = handed_out[1..].iter().sum();
    assert_eq!(ended.code, Some(16), "{}", ended.err);
    let lines = ended.json_lines();
    let gaps: Vec<&Value> = lines.iter().filter(|line| line.get("gap").is_some()).collect();
    assert!(gaps.iter().all(|line| line["gap"]["cause"] == "never_opened"), "{gaps:?}");
    assert_eq!(gaps.iter().map(|line| number(&line["gap"]["count"])).sum::<u64>(), missed);
    assert_eq!((lines.len() - gaps.len()) as u64, handed_out[0]);
    assert!(!ended.err.contains("died"), "{}", ended.err);
}

#[test]
fn a_capture_that_looks_on_accounts_for_everything_whatever_it_was_in_time_for() {
    let test = plays!(program());
    for _ in 0..5 {
        let (_directory, [place, file]) = places(["ring", "t.evc"]);
        let arguments = ["capture", argument(&place), "-o", argument(&file), "--json"];
        let is_there = || wait_until(|| fs::metadata(&file).is_ok_and(|file| file.len() > 500));
        let (handed_out, ended) = look_at(test, &place, &arguments, is_there, false);
        let captured = ended.json();
        let accounted = number(&captured["events"]) + number(&captured["lost"]) + number(&captured["given_up"]);
        assert_eq!(accounted, handed_out.iter().sum::<u64>(), "{captured}");
    }
}
