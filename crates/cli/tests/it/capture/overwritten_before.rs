//! Events that a ring had overwritten before its capture began are the past, and no loss of the capture: every verb
//! says both numbers in one sentence, and `--strict` is only about the second.

use crate::fixtures::*;
use eventring::schema::perf::PerfExt;

const MORE_THAN_A_LAP: u64 = 10_000;

/// A ring of 32,768 events, and the captures of it that go on after each other.
struct Recorded {
    directory: TempDir,
    recorder: Recorder,
}

impl Recorded {
    fn new() -> Self {
        let directory = directory();
        let recorder = typed_in::<PerfEvent>(place(&directory, "perf"))
            .compact(true)
            .shifts(15, 21)
            .prefault(false)
            .build()
            .unwrap();
        Self { directory, recorder }
    }

    fn record(&self, spans: u64) {
        for span_id in 1..=spans {
            for event in [PerfEvent::SpanNew, PerfEvent::SpanEnter, PerfEvent::SpanExit, PerfEvent::SpanClose] {
                let ext = PerfExt { span_id, thread_id: 1, ..PerfExt::default() };
                self.recorder.record(event.code(), ext.to_words(), &[]);
            }
        }
    }

    fn path(&self, name: &str) -> String {
        argument(&place(&self.directory, name)).to_owned()
    }

    /// Captures what the ring has now, after what it had at the capture before.
    fn capture(&self, options: &[&str]) -> crate::program::Run {
        let (ring, row) = (self.path("perf"), self.path("row.evc"));
        run!("capture", &ring, "-o", &row, "--now", "--resume", options)
    }

    /// Returns the files of the captures.
    fn files(&self) -> Vec<String> {
        let mut names: Vec<String> = fs::read_dir(self.directory.path())
            .unwrap()
            .map(|entry| entry.unwrap().path().to_str().unwrap().to_owned())
            .filter(|name| name.ends_with(".evc"))
            .collect();
        names.sort();
        names
    }
}

/// Returns the events that were lost, and those of them that had been overwritten before.
fn counts(object: &Value) -> (u64, u64) {
    (object["lost"].number(), object["overwritten_before"].number())
}

/// Runs a verb about all files, with more options, and returns its exit code and stderr and stdout.
fn about(verb: &[&str], files: &[String], options: &[&str]) -> (Option<i32>, String) {
    let files: Vec<&str> = files.iter().map(String::as_str).collect();
    let done = run!(verb, &files, options);
    (done.code, format!("{}{}", done.err, done.out))
}

#[test]
fn what_was_overwritten_before_a_capture_is_no_loss_of_it_in_any_verb() {
    let recorded = Recorded::new();
    recorded.record(MORE_THAN_A_LAP);
    recorded.capture(&["--strict"]).ends(0).warns("had been overwritten before the capture began");
    let files = recorded.files();
    let (lost, before) = counts(&run!("summary", &files[0], "--json").json());
    assert!(lost > 0 && lost == before, "{lost} {before}");
    let out = recorded.path("out");
    let export: &[&str] = &["export", "--format", "jsonl", "-o", &out, "--force"];
    for verb in [&["summary"][..], export, &["report", "-o", "/dev/null"], &["diff", &files[0]]] {
        let (code, said) = about(verb, &files, &["--strict"]);
        assert_eq!(code, Some(0), "{verb:?}: {said}");
        let words = format!("no event was lost, {} had been overwritten before the capture began", grouped(before));
        assert!(said.contains(&words) && !said.contains("warning"), "{verb:?}: {said}");
    }
    assert_eq!(counts(&run!(export, &files[0], "--json").json()), (lost, lost));
    let lines = run!("export", &files[0], "--format", "jsonl", "-o", "-").json_lines();
    assert_eq!(counts(lines.last().unwrap()), (lost, lost));
    let page = run!("report", &files[0], "-o", &out, "--force", "--json").json();
    assert_eq!(counts(&page["captures"][0]), (lost, lost));
    let page = fs::read_to_string(&out).unwrap();
    assert!(page.contains("<b>0</b><span>events lost</span>"), "{page}");
    assert!(page.contains(&format!("<b>{}</b><span>overwritten before</span>", grouped(before))), "{page}");
    // A ring is read as it is now: the capture begins and ends now.
    let (code, said) = about(&["summary"], &[recorded.path("perf")], &["--strict"]);
    assert!(code == Some(0) && said.contains("no event was lost"), "{said}");
}

#[test]
fn what_was_overwritten_between_two_captures_of_a_row_is_lost_and_said_beside_the_past() {
    let recorded = Recorded::new();
    recorded.record(MORE_THAN_A_LAP);
    recorded.capture(&[]).ends(0);
    recorded.record(MORE_THAN_A_LAP);
    recorded.capture(&["--strict"]).ends(16);
    let files = recorded.files();
    let names: Vec<&str> = files.iter().map(String::as_str).collect();
    let (all, before) = counts(&run!("summary", "--json", &names).json());
    let lost = all - before;
    assert!(lost > 0 && before > 0, "{all} {before}");
    let words = format!("{} events were lost, {} more had been", grouped(lost), grouped(before));
    let verbs = [&["summary"][..], &["export", "-o", &recorded.path("out"), "--force"], &["report", "-o", "/dev/null"]];
    for verb in verbs {
        let (code, said) = about(verb, &files, &["--strict"]);
        assert_eq!(code, Some(16), "{verb:?}: {said}");
        assert!(said.contains(&words), "{verb:?}: {said}");
    }
}

#[test]
fn what_an_awaited_ring_had_overwritten_when_it_was_found_is_lost() {
    let recorded = Recorded::new();
    recorded.record(MORE_THAN_A_LAP);
    let (ring, file) = (recorded.path("awaited"), recorded.path("awaited.evc"));
    let mut live = live!("capture", &ring, "-o", &file, "--wait", "--duration", "30s", "--strict", "--json");
    live.notice("waiting for");
    // The capture finds it when it has gone round already.
    fs::rename(recorded.path("perf"), &ring).unwrap();
    drop(recorded.recorder);
    let captured = live.end().ends(16);
    let (lost, before) = counts(&captured.said());
    assert!(lost > 0 && before == 0, "{captured:?}");
}

fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let groups: Vec<&str> =
        digits.as_bytes().rchunks(3).rev().map(|group| std::str::from_utf8(group).unwrap()).collect();
    groups.join(",")
}
