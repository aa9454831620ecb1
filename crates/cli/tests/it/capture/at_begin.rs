//! A capture begins with the tables of the present: what was open before the ring's window is known by its name and
//! fields, also if the capture was killed and at any time; and it is only said to be open if nothing can have ended it.

use crate::fixtures::*;
use crate::program::now_nanos;
use eventring_capture::{NextRing, RollingCapture, RollingOptions};

const TEXT: &str = "a text for which a cell of the tables has no room";

/// Records spans that open and close, on this thread and on another one, until both have gone round their rings.
fn flood(dispatch: &Dispatch) {
    let floods = || (0..40_000_u64).for_each(|n| info_span!(parent: None, "request", n).in_scope(|| ()));
    thread::scope(|scope| {
        scope.spawn(|| dispatcher::with_default(dispatch, floods));
    });
    floods();
}

fn on_recorder(ring: &Path, test: impl FnOnce(&Dispatch)) {
    let recorder = spans_in(ring).shifts(15, 21).shards(2).build().unwrap();
    let dispatch = Dispatch::new(RecorderSubscriber::new(recorder));
    dispatcher::with_default(&dispatch, || test(&dispatch));
}

/// Returns name and threads of the spans that are open for certain, and how many may have closed.
fn open(file: &Path, options: &[&str]) -> (Vec<(String, usize)>, Value, Value) {
    // A file that was cut is told as such.
    let opened: Value = serde_json::from_str(&run!("open", file, "--json", options).out).unwrap();
    let name = |span: &Value| {
        assert_eq!(span["opened_before_window"], false, "{span:#}");
        (span["name"].text().to_owned(), span["threads"].list().len())
    };
    let spans = opened["spans"].list();
    let ages: Vec<_> = spans.iter().map(|span| std::cmp::Reverse(span["age_ns"].as_u64())).collect();
    assert!(ages.is_sorted(), "{opened:#}");
    // The file may end inside of a short one.
    let is_long = |span: &&Value| !["tick", "request"].contains(&span["name"].text());
    let sure = spans.iter().filter(is_long).filter(|span| span["may_have_closed"] == false);
    let mut names: Vec<_> = sure.map(name).collect();
    names.sort();
    (names, opened["may_have_closed"].clone(), opened)
}

fn named(spans: &[(&str, usize)]) -> Vec<(String, usize)> {
    spans.iter().map(|(name, threads)| ((*name).to_owned(), *threads)).collect()
}

/// Waits until a file has events that were recorded after this time.
fn wait_for_events_after(file: &Path, nanos: u64) {
    let has = || CaptureFile::open(file).is_ok_and(|capture| (0..2).any(|it| capture.last_nanos_of(it) > Some(nanos)));
    wait_while(|| {
        info_span!(parent: None, "tick").in_scope(|| ());
        !has()
    });
}

#[test]
fn a_capture_that_was_killed_names_the_spans_that_were_open_before_the_window_and_are_still() {
    let (_directory, [ring, file]) = places(["r", "t.evc"]);
    on_recorder(&ring, |dispatch| {
        let entered = info_span!("service", port = 80, text = TEXT).entered();
        let (idle, ends) = (info_span!(parent: &entered, "idle"), info_span!("ends", n = 7));
        ends.in_scope(|| ());
        flood(dispatch);
        let in_window = info_span!("in window");
        let mut capture = live!("capture", &ring, "-o", &file);
        wait_for_events_after(&file, 0);
        let before = now_nanos();
        wait_for_events_after(&file, before);
        drop(ends);
        wait_for_events_after(&file, now_nanos());
        capture.kill();

        let all = [("ends", 0), ("idle", 0), ("in window", 0), ("service", 1)];
        let at = before.to_string();
        let (names, perhaps, opened) = open(&file, &["--at", &at]);
        assert_eq!((names, perhaps), (named(&all), 0.into()), "{opened:#}");
        let (names, perhaps, opened) = open(&file, &[]);
        assert_eq!((names, perhaps), (named(&all[1..]), 0.into()), "{opened:#}");
        let of = |name: &str| opened["spans"].list().iter().find(|span| span["name"] == name).unwrap();
        assert_eq!(of("service")["fields"]["port"], 80);
        assert_eq!(of("idle")["parents"][0], of("service")["id"]);
        assert!(of("service")["age_ns"].as_u64() > of("in window")["age_ns"].as_u64());
        drop((entered, idle, in_window));
    });
}

#[test]
fn what_losses_after_the_begin_may_have_ended_is_only_open_perhaps_until_the_next_look() {
    let (directory, [ring, file]) = places(["r", "t.evc"]);
    on_recorder(&ring, |dispatch| {
        let idle = info_span!("idle");
        flood(dispatch);
        let mut capture = live!("capture", &ring, "-o", &file);
        wait_for_events_after(&file, 0);
        let pid = Pid::from_child(&capture.child);
        let signal = |signal| kill_process(pid, signal).unwrap();
        signal(Signal::STOP);
        flood(dispatch);
        signal(Signal::CONT);
        wait_for_events_after(&file, now_nanos());
        let cut = place(&directory, "cut.evc");
        fs::copy(&file, &cut).unwrap();
        assert_eq!(open(&cut, &[]).0, vec![]);
        assert!(open(&cut, &[]).2["spans"].to_string().contains("\"idle\""));
        signal(Signal::INT);
        capture.child.wait().unwrap();
        let last = CaptureFile::open(&file).unwrap();
        let at = (0..2).filter_map(|ring| last.last_nanos_of(ring)).max().unwrap().to_string();
        for options in [&["--at", &at][..], &[]] {
            assert_eq!((open(&file, options).0, open(&file, options).1), (named(&[("idle", 0)]), 0.into()));
        }
        drop(idle);
    });
}

#[test]
fn a_span_whose_begin_a_quiet_shard_still_has_is_open_for_certain_whatever_a_busy_one_has_lost() {
    let (_directory, [ring, file]) = places(["r", "t.evc"]);
    on_recorder(&ring, |dispatch| {
        let busy = info_span!("busy");
        let begin = || dispatcher::with_default(dispatch, || info_span!(parent: None, "quiet"));
        let quiet = thread::scope(|scope| scope.spawn(begin).join().unwrap());
        let later = info_span!("later");
        (0..80_000_u64).for_each(|n| info_span!(parent: None, "request", n).in_scope(|| ()));
        let mut capture = live!("capture", &ring, "-o", &file);
        wait_for_events_after(&file, 0);
        wait_for_events_after(&file, now_nanos());
        capture.kill();
        let (names, perhaps, opened) = open(&file, &[]);
        let all = named(&[("busy", 0), ("later", 0), ("quiet", 0)]);
        assert_eq!((names, perhaps), (all, 0.into()), "{opened:#}");
        drop((busy, quiet, later));
    });
}

#[test]
fn a_file_that_is_cut_from_a_rolling_capture_names_what_was_open_in_its_time() {
    let (_directory, [ring, file]) = places(["r", "t.evc"]);
    on_recorder(&ring, |dispatch| {
        let (idle, ended) = (info_span!("idle"), info_span!("ended"));
        flood(dispatch);
        let mut rings = vec![Reader::open(&ring).unwrap()];
        let next_ring = move || rings.pop().map_or(NextRing::NoMore, NextRing::Ring);
        let rolling = RollingCapture::begin(next_ring, &RollingOptions::new().keep(Duration::from_secs(8))).unwrap();
        // Some looks are before the time.
        thread::sleep(Duration::from_millis(1500));
        drop(ended);
        let from = now_nanos();
        info_span!("within").in_scope(|| thread::sleep(Duration::from_millis(2500)));
        let later = info_span!("later");
        rolling.cut(from..=now_nanos(), &file, false).unwrap();
        drop((idle, later));
    });
    assert_eq!(open(&file, &[]).0, named(&[("idle", 0), ("later", 0)]));
}
