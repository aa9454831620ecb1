//! `eventring watch` prints what it waits for. It accounts for all events of rings that are made while it waits, and
//! notices if somebody truncates a ring's file.

use crate::fixtures::*;

fn record(recorder: &Recorder, times: u64) {
    (0..times).for_each(|_| assert_ne!(recorder.record(ExecEvent::TxnEnd as u16, [0; 4], b""), 0));
}

/// Starts the program, waits for its first notice on stderr, and interrupts the program. Returns the notice.
fn only_notice(arguments: &[&str]) -> String {
    let mut live = Live::start(arguments);
    let line = live.notice("");
    live.interrupt();
    live.end().ends(0);
    line
}

/// Returns how many seqnos a line accounts for: 1 if it shows an event, the gap's count if it shows a gap, otherwise
/// 0.
fn accounted_for(line: &Value) -> u64 {
    line["gap"]["count"].as_u64().unwrap_or(u64::from(line["seqno"].is_u64()))
}

#[test]
fn it_says_what_it_waits_for() {
    let (_directory, [path]) = places(["ring"]);
    let ring = argument(&path);
    assert_eq!(only_notice(&["watch", ring, "--reopen"]), format!("── waiting for the ring {ring} to be made ──\n"));
    let recorder = exec_ring(&path);
    assert_eq!(only_notice(&["watch", ring]), "── waiting for the first event ──\n");
    record(&recorder, 2);
    assert_eq!(only_notice(&["watch", ring]), "── waiting for events; 2 were recorded before ──\n");
    let far = only_notice(&["watch", ring, "--from", "99999999"]);
    assert_eq!(far, "── waiting for event 99,999,999; the newest is 2 ──\n");

    let _open = recorder.reserve(ExecEvent::TxnEnd as u16, [0; 4], 0).unwrap();
    let mut live = live!("watch", ring, "--from", "oldest", "--json");
    assert_eq!((live.json_line()["seqno"].as_u64(), live.json_line()["seqno"].as_u64()), (Some(1), Some(2)));
    assert_eq!(live.notice(""), "── event 3 is still being written ──\n");
    live.interrupt();
    live.end();
    // With --quiet, the watch prints nothing.
    let live = live!("watch", ring, "--quiet");
    std::thread::sleep(Duration::from_millis(1500));
    live.interrupt();
    assert_eq!(live.end().err, "");
}

#[test]
fn an_event_that_is_being_written_is_neither_shown_nor_lost() {
    let (directory, [path]) = places(["ring"]);
    let recorder = exec_ring(&path);
    record(&recorder, 2);
    let open = recorder.reserve(ExecEvent::TxnEnd as u16, [0; 4], 0).unwrap();
    record(&recorder, 1);
    let events = run!("info", "--json", &path).json()["events"].clone();
    assert_eq!((&events["count"], &events["lost"], &events["being_written"]), (&3.into(), &0.into(), &1.into()));
    let text = run!("info", &path).out;
    assert!(text.contains("nothing has been overwritten, 1 being written"), "{text}");
    let saved = place(&directory, "saved");
    let reported = run!("snapshot", &path, "-o", &saved);
    assert!(reported.err.ends_with("\n1 event was still being written and not in the snapshot\n"), "{reported:?}");
    let summary = run!("snapshot", &path, "-o", &saved, "--force", "--json").json();
    assert_eq!((&summary["events"], &summary["lost"], &summary["being_written"]), (&3.into(), &1.into(), &1.into()));
    drop(open);
    assert_eq!(run!("info", "--json", &path).json()["events"]["being_written"], 0);
}

#[test]
fn losses_before_a_reopen_are_counted() {
    let (_directory, [path]) = places(["ring"]);
    let mut live = live!("watch", &path, "--reopen", "--json", "--strict");
    // The watch began before the ring was made, so it must account for every event of the ring.
    live.notice("waiting for the ring");
    let mut anew = Vec::new();
    for _ in 0..2 {
        let recorder = exec_ring(&path);
        let burst = recorder.geometry().descriptor_capacity() * 3;
        record(&recorder, burst);
        let mut seen = 0;
        while seen < burst {
            let line = live.json_line();
            seen += accounted_for(&line);
            if line["made_anew"].is_object() {
                anew.push(line);
            }
        }
        assert_eq!(seen, burst);
    }
    live.interrupt();
    live.end().ends(16);
    // The second ring has the name of the first one, and its seqnos begin with 1 again. One line of the output
    // reports this.
    assert_eq!(anew.len(), 1);
    assert_eq!(
        (&anew[0]["made_anew"]["name"], &anew[0]["made_anew"]["pid"]),
        (&argument(&path).into(), &std::process::id().into())
    );
}

#[test]
fn rings_that_live_for_milliseconds_are_seen_by_reopen() {
    const RINGS: usize = 8;
    // On a busy machine, any watch may miss a ring of a few milliseconds. So there are several rounds, and in one of
    // them the watch must see all rings. A watch that looks every 20 ms sees less than half of the rings of a round.
    let mut seen = Vec::new();
    while seen.last() != Some(&RINGS) && seen.len() < 20 {
        seen.push(short_rings_seen(RINGS));
    }
    assert_eq!(seen.last(), Some(&RINGS), "{seen:?}");
}

/// Makes this many rings, one after the other, each for a few milliseconds. Returns how many of them a watch has seen.
fn short_rings_seen(rings: usize) -> usize {
    let (_directory, [path]) = places(["ring"]);
    let live = live!("watch", &path, "--reopen", "--json");
    for _ in 0..rings {
        let recorder = exec_ring(&path);
        record(&recorder, 1);
        std::thread::sleep(Duration::from_millis(8));
        drop(recorder);
        std::thread::sleep(Duration::from_millis(12));
    }
    live.interrupt();
    let run = live.end();
    // The watch cannot know whether it has missed a ring, so its summary is only about the rings that it has seen.
    assert!(run.err.contains(" event"), "{run:?}");
    assert!(run.err.contains(", none lost in the rings that were seen, "), "{run:?}");
    run.json_lines().iter().filter(|line| line["seqno"] == 1).count()
}

#[test]
fn a_ring_that_is_cut_off_while_it_is_watched_is_an_error() {
    let (_directory, [path]) = places(["ring"]);
    let recorder = exec_ring(&path);
    record(&recorder, 3);
    let mut live = live!("watch", &path, "--from", "oldest", "--json", "--reopen");
    assert_eq!(live.json_line()["seqno"], 1);
    std::fs::File::options().write(true).open(&path).unwrap().set_len(4096).unwrap();
    let run = live.end().ends(6);
    let error = run.err.lines().last().unwrap();
    assert!(error.starts_with(&format!("error: {}: the file was truncated", path.display())), "{error}");
    assert!(!run.err.contains("none lost"), "{run:?}");
}

#[test]
fn a_skipped_seqno_is_shown_and_is_not_a_loss() {
    let (_directory, [path]) = places(["ring"]);
    let recorder = exec_ring(&path);
    let capacity = recorder.geometry().descriptor_capacity();
    // This reservation stays open in its slot. The last of the following events comes to the same slot a lap later,
    // finds it taken, and gets the next seqno.
    let stalled = recorder.reserve(ExecEvent::TxnEnd as u16, [0; 4], 0).unwrap();
    record(&recorder, capacity);
    drop(stalled);
    recorder.keep(true);
    drop(recorder);
    let from = (capacity - 1).to_string();
    let watched = run!("watch", &path, "--from", &from, "--strict", "--json").ends(0);
    let lines = watched.json_lines();
    assert_eq!((lines.len(), lines.iter().map(accounted_for).sum::<u64>()), (4, 4));
    assert_eq!(lines[2]["gap"], serde_json::json!({ "first_seqno": capacity + 1, "count": 1, "cause": "given_up" }));
    assert_eq!(lines[3]["seqno"], capacity + 2);
    assert!(watched.err.starts_with("── 3 events shown, none lost, 1 number without an event, "), "{watched:?}");
    let text = run!("watch", &path, "--from", &from).out;
    assert!(text.contains(&format!("── the number {} stands for no event ──\n", capacity + 1)), "{text}");
}

#[test]
fn a_block_is_looked_for_only_where_there_are_blocks() {
    let (_directory, [path]) = places(["ring"]);
    let _recorder =
        Recorder::builder(ContentDescription::new(300, "SHOP")).config(&path).compact(true).shifts(15, 21).build();
    run!("watch", &path, "--from", "block").fails(8, "\nerror: --from block needs a ring of execution events");
}

#[test]
fn a_ring_that_is_being_made_in_place_is_awaited_as_a_missing_one_is() {
    let (directory, [made, place_of_ring]) = places(["made", "ring"]);
    let recorder = exec_ring(&made);
    recorder.keep(true);
    recorder.record(ExecEvent::TxnEnd as u16, [0, 7, 0, 0], b"");
    drop(recorder);
    let image = std::fs::read(&made).unwrap();
    // The published library makes the file under its final name, gives it its size, and writes the header last.
    let file = std::fs::File::create(&place_of_ring).unwrap();
    let mut watch = live!("watch", &place_of_ring, "--reopen", "--json");
    let capture_file = place(&directory, "ring.evc");
    let capture = live!("capture", &place_of_ring, "--wait", "-o", &capture_file);
    let pause = || std::thread::sleep(std::time::Duration::from_millis(200));
    pause();
    file.write_all_at(&image[64..], 64).unwrap();
    pause();
    file.write_all_at(&image[..6], 0).unwrap();
    pause();
    file.write_all_at(&image[..64], 0).unwrap();
    assert_eq!(watch.json_line()["ext"][1], 7);
    let captured = capture.end();
    assert!(captured.code == Some(0) && captured.err.starts_with("1 event "), "{captured:?}");
    // The next ring of the name is made in the same way.
    std::fs::remove_file(&place_of_ring).unwrap();
    let file = std::fs::File::create(&place_of_ring).unwrap();
    pause();
    file.write_all_at(&image[64..], 64).unwrap();
    file.write_all_at(&image[..64], 0).unwrap();
    assert_eq!(watch.json_line()["made_anew"]["name"], argument(&place_of_ring));
    assert_eq!(watch.json_line()["ext"][1], 7);
    watch.interrupt();
    assert_eq!(watch.end().code, Some(0));
    // Without the request to wait, such a file is an error.
    std::fs::File::create(&place_of_ring).unwrap();
    run!("watch", &place_of_ring).fails(4, "is empty");
}
