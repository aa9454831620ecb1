//! Answers about captures with random content.

use crate::{BUDGET_MIN_BYTES, FlagKind, ask};
use eventring::reader::GapCause;
use eventring::schema::perf::{CallSiteKind, CallSiteLevel, PerfEvent, PerfExt};
use eventring::schema::test::TestEvent;
use eventring_capture::CaptureFile;
use eventring_capture::fixtures::{CaptureFixture, text};
use eventring_export::any_capture::{any_element, capture_of};
use proptest::prelude::*;
use serde_json::Value;

const MS: u64 = 1_000_000;

/// A program that records spans of two names one after the other, with times between 100 and 200 µs.
struct Program {
    made: CaptureFixture,
    nanos: u64,
    span: u64,
    random: u64,
}

impl Program {
    fn new(seed: u64) -> Self {
        let mut made = CaptureFixture::new();
        for (id, name) in [(1, "request"), (2, "query"), (3, "stuck")] {
            made.call_site(1000, id, CallSiteKind::Span, name, &[]);
        }
        made.call_site_of(1000, 4, (CallSiteKind::Event, CallSiteLevel::Error), "failed", &["message"]);
        made.call_site_of(1000, 5, (CallSiteKind::Event, CallSiteLevel::Error), "TRIGGER", &["message", "reason"]);
        Self { made, nanos: 2000, span: 0, random: seed | 1 }
    }

    fn some(&mut self, below: u64) -> u64 {
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        self.random % below
    }

    fn open(&mut self, site: u32) -> u64 {
        self.span += 1;
        self.made.span_new(self.nanos, 1, (self.span, 0), site, &[]);
        self.made.span(PerfEvent::SpanEnter, self.nanos, 1, self.span, site);
        self.span
    }

    fn close(&mut self, span: u64, site: u32) {
        self.made.span(PerfEvent::SpanExit, self.nanos, 1, span, site);
        self.made.span(PerfEvent::SpanClose, self.nanos, 1, span, site);
    }

    /// Records so many spans that take this long and up to as much more.
    fn spans(&mut self, count: u64, site: u32, nanos: u64) {
        for _ in 0..count {
            let span = self.open(site);
            self.nanos += nanos + self.some(nanos);
            self.close(span, site);
            self.nanos += self.some(50_000);
        }
    }

    fn typed(&mut self, event: TestEvent) {
        let ring = self.made.add_typed::<TestEvent>("typed");
        self.made.event(ring, event as u16, self.nanos, [0; 4], &[0; 16]);
    }

    fn error(&mut self, message: &str) {
        let ext = PerfExt { call_site_id: 4, thread_id: 1, field_count: 1, ..PerfExt::default() };
        self.made.perf(PerfEvent::Event, self.nanos, ext, &text(0, message));
        self.nanos += MS;
    }

    fn trigger(&mut self, reason: &str) {
        let ext = PerfExt { call_site_id: 5, thread_id: 1, field_count: 2, ..PerfExt::default() };
        self.made.perf(PerfEvent::Event, self.nanos, ext, &[text(0, "boom"), text(1, reason)].concat());
        self.nanos += MS;
    }
}

fn flags(capture: &CaptureFile) -> Vec<(FlagKind, String)> {
    let look = ask(capture, &["shop.evc"]).unwrap();
    look.flags().iter().map(|flag| (flag.kind, flag.what.clone())).collect()
}

fn usual(seed: u64) -> Program {
    let mut program = Program::new(seed);
    for _ in 0..200 {
        program.spans(1, 1, 200_000);
        program.spans(3, 2, 100_000);
    }
    program
}

#[test]
fn clean_recordings_have_no_flags() {
    for seed in 1..=40 {
        let mut program = usual(seed * 77);
        // Few errors, a little loss before the capture, and spans that are open as long as others take.
        program.error("not found");
        program.trigger("its own");
        program.made.gap(0, 100, GapCause::OverwrittenBefore);
        program.made.gap(0, 3, GapCause::Skipped);
        program.typed(TestEvent::TestVlt);
        program.open(1);
        program.nanos += 300_000;
        program.spans(1, 2, 100_000);
        assert_eq!(flags(&program.made.open()), [], "seed {seed}");
    }
}

#[test]
fn each_fault_is_found_beside_usual_spans_and_named() {
    type Plant = fn(&mut Program);
    let faults: [(FlagKind, &str, Plant); 10] = [
        (FlagKind::RecordErrors, "typed", |program| program.typed(TestEvent::RecordError)),
        (FlagKind::Losses, "shop", |program| program.made.gap(0, 7, GapCause::Overwritten)),
        (FlagKind::SlowSpan, "shop::web::query", |program| program.spans(2, 2, 40 * MS)),
        (FlagKind::LatencyStep, "shop::web::query", |program| program.spans(600, 2, 3 * MS)),
        (FlagKind::ErrorBurst, "shop::web (src/web.rs:14)", |program| (0..20).for_each(|_| program.error("refused"))),
        (FlagKind::Panic, "shop::web (src/web.rs:14)", |program| {
            program.error("thread 'main' panicked at src/web.rs:7")
        }),
        (FlagKind::Panic, "shop::web (src/web.rs:15)", |program| program.trigger("panic")),
        (FlagKind::HungSpan, "shop::web::stuck", |program| {
            program.spans(5, 3, 100_000);
            program.open(3);
            (0..40).for_each(|_| {
                program.nanos += 40 * MS;
                program.spans(1, 1, 200_000);
            });
        }),
        (FlagKind::OpenSpans, "shop::web::stuck", |program| (0..1500).for_each(|_| _ = program.open(3))),
        (FlagKind::Silence, "shop (4711)", |program| {
            program.nanos += 3000 * MS;
            program.spans(50, 1, 200_000);
        }),
    ];
    for (kind, what, plant) in faults {
        for seed in 1..=10 {
            let mut program = usual(seed * 131);
            plant(&mut program);
            program.spans(20, 1, 200_000);
            let found = flags(&program.made.open());
            assert_eq!(found, [(kind, what.to_owned())], "{kind:?} seed {seed}");
        }
    }
}

#[test]
fn an_answer_says_what_was_left_out_and_the_most_important_is_kept() {
    let mut program = usual(5);
    for site in 10..1000 {
        program.made.call_site(1000, site, CallSiteKind::Span, &format!("name {site}"), &[]);
        program.spans(30, site, 100_000);
        program.spans(1, site, 90 * MS);
    }
    program.made.gap(0, 9, GapCause::Overwritten);
    let look = ask(&program.made.open(), &["a'b c.evc"]).unwrap();
    assert!(look.flags().len() > 900);
    let answer: Value = serde_json::from_str(&look.to_json(16_384)).unwrap();
    let shown = answer["flags"].as_array().unwrap();
    assert_eq!((&shown[0]["flag"], &shown[0]["next"]), (&"losses".into(), &r"eventring summary 'a'\''b c.evc'".into()));
    assert_eq!(answer["left_out"]["flags"].as_u64().unwrap() as usize + shown.len(), look.flags().len());
    assert!(shown.len() > 10 && answer["names"].as_array().unwrap().len() > 3, "{answer:#}");
    let people = look.to_markdown(1024, |nanos| nanos.to_string());
    assert!(people.contains("**losses** shop") && people.contains("left out for the budget"), "{people}");
}

proptest! {
    #[test]
    fn no_answer_is_larger_than_its_budget(
        elements in prop::collection::vec(any_element(), 0..80),
        names in prop::collection::vec("\\PC{0,300}|[\\x00-\\x1f\"'`\\\\]{0,300}|.{0,300}", 0..20),
        input in "\\PC{0,2000}",
        budget in 0..40_000_usize,
    ) {
        let capture = capture_of(&elements);
        let look = ask(&capture, &[&input]).unwrap();
        let most = budget.max(BUDGET_MIN_BYTES);
        let (json, people) = (look.to_json(budget), look.to_markdown(budget, |nanos| nanos.to_string()));
        prop_assert!(json.len() <= most && people.len() <= most, "{} {} {most}", json.len(), people.len());
        serde_json::from_str::<Value>(&json).unwrap();
        // Many names that are slow, each one a flag.
        let mut program = Program::new(7);
        for (site, name) in (10..).zip(&names) {
            program.made.call_site(1000, site, CallSiteKind::Span, name, &[]);
            program.spans(20, site, 100_000);
            program.spans(1, site, 90 * MS);
        }
        let look = ask(&program.made.open(), &[&input]).unwrap();
        let (json, people) = (look.to_json(budget), look.to_markdown(budget, |nanos| nanos.to_string()));
        prop_assert!(json.len() <= most && people.len() <= most, "{} {} {most}", json.len(), people.len());
        let answer = serde_json::from_str::<Value>(&json).unwrap();
        let shown = answer["flags"].as_array().unwrap().len() as u64;
        prop_assert_eq!(answer["left_out"]["flags"].as_u64().unwrap() + shown, look.flags().len() as u64);
        prop_assert_eq!(json.lines().count(), 1);
        prop_assert!(!people.chars().any(|c| c.is_control() && c != '\n'));
    }
}
