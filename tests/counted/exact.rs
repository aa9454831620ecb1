//! Each allocation counts for the innermost span of its thread, and nothing else does.

use crate::fixtures::*;
use crate::truth::{self, LABELS, NO_LABEL, set_label};
use eventring::schema::perf::Allocated;
use eventring::tracing::{Span, SpanReplay};
use eventring::{log, scope};
use std::thread;

/// The names of the spans, by their labels. Label 0 is outside of all spans.
const NAMES: [&str; 5] = ["", "one", "two", "three", "four"];

/// Something that allocates when it is shown. What recording allocates, also for the program's `Debug`, does not count.
struct Shown(Vec<String>);

impl std::fmt::Debug for Shown {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0.concat())
    }
}

/// Does things that allocate, and enters spans, at random.
fn work(random: &mut Random, depth: u64, kept: &mut Vec<Vec<u8>>) {
    for _ in 0..random.below(6) {
        match random.below(9) {
            0 => kept.push(vec![1; 1 + random.below(5_000) as usize]),
            1 => kept.push(vec![0; 1 + random.below(5_000) as usize]),
            2 => drop(kept.pop()),
            3 => kept.iter_mut().take(3).for_each(|bytes| bytes.resize(random.below(9_000) as usize + 1, 7)),
            4 => kept.iter_mut().take(3).for_each(Vec::shrink_to_fit),
            5 => {
                let shown = Shown(vec!["a".repeat(random.below(3_000) as usize); 3]);
                let label = set_label(NO_LABEL);
                info!(?shown, number = depth, "a long text");
                log::info!("{shown:?} as text");
                set_label(label);
            }
            _ if depth == 0 => {}
            which => inside(random, which, depth - 1, kept),
        }
    }
}

/// Does the same in a span.
fn inside(random: &mut Random, which: u64, depth: u64, kept: &mut Vec<Vec<u8>>) {
    let label = 1 + random.below(4) as usize;
    let shown = Shown(vec!["b".to_owned(); 50]);
    let outer = set_label(NO_LABEL);
    macro_rules! with {
        ($guard:expr) => {{
            let guard = $guard;
            set_label(label);
            work(random, depth, kept);
            set_label(NO_LABEL);
            drop(guard);
        }};
    }
    match (label, which) {
        (1, 6) => with!(scope!("one")),
        (1, _) => with!(scope!("one", depth, text = "something")),
        (2, 6) => with!(scope!("two", ?shown)),
        (2, _) => with!(info_span!("two").entered()),
        (3, _) => with!(info_span!("three", depth, ?shown).entered()),
        _ => with!(info_span!("four").entered()),
    }
    set_label(outer);
}

/// Returns the sums by name, and what was counted in no span.
fn recorded(recorder: &PerfRecorder) -> BTreeMap<String, Allocated> {
    let (mut sums, mut all) = (BTreeMap::<String, Allocated>::new(), Allocated::default());
    let mut replay = SpanReplay::new();
    for record in records(recorder) {
        if let PerfContent::Allocated { allocated: Some(allocated), .. } = &record.content {
            all = all.plus(*allocated);
        }
        replay.push(0, &record);
    }
    for span in replay.finish(u64::MAX) {
        let sum = sums.entry(Span::name(&span).to_string()).or_default();
        *sum = sum.plus(span.allocated.unwrap_or_default());
    }
    let of_spans = sums.values().fold(Allocated::default(), |sum, of_name| sum.plus(*of_name));
    let outside = Allocated {
        allocations: all.allocations - of_spans.allocations,
        bytes: all.bytes - of_spans.bytes,
        frees: all.frees - of_spans.frees,
        freed_bytes: all.freed_bytes - of_spans.freed_bytes,
    };
    sums.insert(String::new(), outside);
    sums.retain(|_, sum| !sum.is_none());
    sums
}

/// Runs a random program on a thread of its own. Returns what it has allocated, by label.
fn program(seed: u64) -> [Allocated; LABELS] {
    let run = move || {
        let mut random = Random(seed);
        let mut kept = Vec::new();
        // The thread has recorded before it counts.
        drop(scope!("begin"));
        truth::take();
        set_label(0);
        for _ in 0..20 {
            work(&mut random, 4, &mut kept);
        }
        set_label(NO_LABEL);
        // What is pending is recorded here.
        drop(scope!("end"));
        truth::take()
    };
    thread::spawn(run).join().unwrap()
}

#[test]
fn random_programs_allocate_what_their_own_allocator_says_in_each_span() {
    alone!();
    let recorder = small().shifts(20, 27).build().unwrap();
    PERF.install(recorder.clone()).unwrap();
    tracing::subscriber::set_global_default(RecorderSubscriber::global()).unwrap();
    let programs: u64 = std::env::var("EVENTRING_ALLOCATED_PROGRAMS").map_or(200, |count| count.parse().unwrap());
    // `tracing` allocates when it meets a call site for the first time, and that is the program's.
    (1..20).for_each(|seed| _ = program(seed));
    let before = recorded(&recorder);
    let mut expected = [Allocated::default(); LABELS];
    for seed in 20..20 + programs {
        expected.iter_mut().zip(program(seed)).for_each(|(sum, of_program)| *sum = sum.plus(of_program));
    }
    let mut after = recorded(&recorder);
    // Outside of the spans, the threads of the test allocate more than what they count.
    after.remove("");
    for (label, name) in NAMES.iter().enumerate().skip(1) {
        assert_eq!(after.remove(*name), Some(before[*name].plus(expected[label])), "{name}");
        assert!(expected[label].allocations > programs && expected[label].frees > programs);
    }
    assert_eq!(after, BTreeMap::new());
}
