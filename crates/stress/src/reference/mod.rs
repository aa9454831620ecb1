//! A reference for the tests of `tracing`: it collects a program's operations on spans and events in memory, without
//! code of the recorder. Tests compare the operations with what is read back from the ring.
//!
//! Every span and event of a test has a field `uid`. By this field, a test finds the same span or event in the
//! reference and in the ring.

mod model;
mod recorded;

pub use model::{ReferenceLayer, ReferenceTee};
pub use recorded::{facts_of, log_fields, read_back, records};

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::sync::{Arc, Mutex};

/// The facts about a span that both the reference and the ring know.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SpanFacts {
    pub name: String,
    pub target: String,
    /// The parent's `uid`.
    pub parent: Option<u64>,
    /// Fields by name, printed.
    pub fields: BTreeMap<String, String>,
    /// For each thread, a text of its enters (`E`) and exits (`X`) of the span, in their order. The key is the
    /// thread's id in the operating system.
    pub stays: BTreeMap<u32, String>,
    pub follows: BTreeSet<u64>,
    pub is_closed: bool,
}

/// An event.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EventFacts {
    pub target: String,
    pub level: String,
    pub span: Option<u64>,
    pub fields: BTreeMap<String, String>,
    pub thread: u32,
}

/// All spans and events, by `uid`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Facts {
    pub spans: BTreeMap<u64, SpanFacts>,
    pub events: BTreeMap<u64, EventFacts>,
}

/// The facts that a reference collects.
pub type Collected = Arc<Mutex<Facts>>;

impl Facts {
    /// Returns a text with one line for each span and event, so that a child process can send its facts to its
    /// parent.
    pub fn to_text(&self) -> String {
        let mut text = String::new();
        for (uid, span) in &self.spans {
            let _ = writeln!(text, "span {uid} {span:?}");
        }
        for (uid, event) in &self.events {
            let _ = writeln!(text, "event {uid} {event:?}");
        }
        text
    }
}

/// Reads the clock many times, which calibrates the clock. For about half a millisecond afterwards, reading the clock
/// needs no system call.
pub fn ask_the_time_often() {
    (0..100).for_each(|_| {
        std::hint::black_box(eventring::recorder::Clock::global().now_epoch_nanos());
    });
}

/// Asserts that both texts are the same. If they differ, panics with the first few lines that only one of them has.
#[track_caller]
pub fn assert_same(recorded: &str, expected: &str) {
    if recorded == expected {
        return;
    }
    let recorded: BTreeSet<&str> = recorded.lines().collect();
    let expected: BTreeSet<&str> = expected.lines().collect();
    let missing: Vec<_> = expected.difference(&recorded).take(5).collect();
    let surplus: Vec<_> = recorded.difference(&expected).take(5).collect();
    panic!("what was read back differs\nexpected: {missing:#?}\nrecorded: {surplus:#?}");
}

/// Returns the calling thread's id in the operating system.
pub fn os_thread_id() -> u32 {
    rustix::thread::gettid().as_raw_nonzero().get().unsigned_abs()
}
