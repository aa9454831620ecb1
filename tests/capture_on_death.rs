//! The file that `eventring capture --on death` writes lists exactly the spans that were open when the program was
//! killed, in the middle of its work.
#![cfg(feature = "cli")]

mod child;
mod program;
mod triggers;

use child::{Talk, part, place, play, say};
use eventring::tracing::try_init;
use program::{argument, directory};
use std::collections::BTreeSet;
use std::fs::File;
use std::os::unix::fs::FileExt as _;
use std::path::Path;
use std::time::Duration;
use tracing::{info, info_span};
use triggers::{checked, count, open_spans, result, watch_before};

const THREADS: u64 = 4;
/// The number of spans in each other that a thread may be in.
const DEPTH: u64 = 6;
const SLOT_BYTES: u64 = 16;

/// States of a span that the program notes in a file, which stays after its death. While a span is being created or
/// closed, nobody can say whether it is open.
const GONE: u64 = 0;
const BEGINNING: u64 = 1;
const OPEN: u64 = 2;
const ENDING: u64 = 3;

fn note(truth: &File, slot: u64, state: u64, id: u64) {
    let words: Vec<u8> = [state, id].iter().flat_map(|word| word.to_le_bytes()).collect();
    truth.write_all_at(&words, slot * SLOT_BYTES).unwrap();
}

/// Opens spans in each other to a random depth, and closes them again. Notes each step.
fn nest(truth: &File, thread: u64, depth: u64, random: &mut u64) {
    let slot = thread * DEPTH + depth;
    note(truth, slot, BEGINNING, 0);
    let span = info_span!("work", depth);
    let id = span.id().unwrap().into_u64();
    note(truth, slot, OPEN, id);
    let entered = span.entered();
    *random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
    if depth + 1 < DEPTH && *random >> 62 != 0 {
        nest(truth, thread, depth + 1, random);
    }
    info!(depth, "in the span");
    if *random >> 40 & 7 == 0 {
        std::thread::sleep(Duration::from_micros(300));
    }
    let span = entered.exit();
    note(truth, slot, ENDING, id);
    drop(span);
    note(truth, slot, GONE, 0);
}

fn work() -> ! {
    let _recording = try_init(format!("{}:17:23", place().display())).unwrap();
    let truth = File::options().write(true).open(place().with_extension("truth")).unwrap();
    let truth: &File = Box::leak(Box::new(truth));
    for thread in 0..THREADS {
        std::thread::spawn(move || {
            let mut random = (thread + u64::from(std::process::id())) * 2 + 1;
            loop {
                nest(truth, thread, 0, &mut random);
                std::thread::sleep(Duration::from_micros(200));
            }
        });
    }
    say("works");
    loop {
        std::thread::park();
    }
}

/// Notes of the program at its death.
#[derive(Debug)]
struct Truth {
    open: BTreeSet<u64>,
    /// The spans that were being closed.
    ending: BTreeSet<u64>,
    /// The number of spans that were being created.
    beginning: usize,
}

impl Truth {
    fn read(path: &Path) -> Self {
        let bytes = std::fs::read(path).unwrap();
        let word = |at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap());
        let slots: Vec<(u64, u64)> = (0..bytes.len()).step_by(16).map(|at| (word(at), word(at + 8))).collect();
        let ids = |state| slots.iter().filter(move |it| it.0 == state).map(|it| it.1).collect();
        let beginning = slots.iter().filter(|it| it.0 == BEGINNING).count();
        Self { open: ids(OPEN), ending: ids(ENDING), beginning }
    }

    /// Returns true if these are the open spans.
    fn allows(&self, listed: &BTreeSet<u64>) -> bool {
        let known: BTreeSet<u64> = self.open.union(&self.ending).copied().collect();
        self.open.is_subset(listed) && listed.difference(&known).count() <= self.beginning
    }
}

const KILLED: &str = "the_file_of_a_death_lists_exactly_the_spans_that_were_open";

#[test]
fn the_file_of_a_death_lists_exactly_the_spans_that_were_open() {
    if part().is_some() {
        work();
    }
    let mut open = 0;
    for round in 0..5_u64 {
        let directory = directory();
        let (ring, names) = (program::place(&directory, "ring"), program::place(&directory, "{n}-{span}.evc"));
        let truth = ring.with_extension("truth");
        std::fs::write(&truth, vec![0; (THREADS * DEPTH * SLOT_BYTES) as usize]).unwrap();
        let live = watch_before(&ring, &["--on", "death", "--after", "100ms", "-o", argument(&names)]);
        let mut talk = Talk::with(play(KILLED, "works", &ring));
        assert_eq!(talk.hear(), "works");
        std::thread::sleep(Duration::from_millis(100 + 37 * round));
        talk.child.kill().unwrap();
        talk.child.wait().unwrap();
        let result = result(&live.end());
        assert_eq!((count(&result, "fired"), count(&result, "lost")), (1, 0), "{result:#}");
        let (file, manifest) = checked(&result["files"][0]);
        assert_eq!((&manifest["reason"], &manifest["program"]["pid"]), (&"death".into(), &talk.child.id().into()));
        let listed: BTreeSet<u64> = open_spans(&file).into_iter().map(|(id, _)| id).collect();
        let truth = Truth::read(&truth);
        assert!(truth.allows(&listed), "{listed:?}, expected {truth:?}");
        // The check notices one span too few, and spans too many.
        for id in &truth.open {
            assert!(!truth.allows(&listed.iter().copied().filter(|listed| listed != id).collect()));
        }
        let more = listed.iter().copied().chain((1..=THREADS * DEPTH + 1).map(|n| u64::MAX - n));
        assert!(!truth.allows(&more.collect()));
        open += truth.open.len();
    }
    assert!(open > 0, "no span was open at any death");
}
