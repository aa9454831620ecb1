//! Captures whose spans have counts of instructions that the test chooses.

use crate::fixtures::*;
use eventring::schema::perf::{CallSiteKind, CallSiteLevel, CallSiteView, PerfExt};

/// A span that is called several times, inside the spans before it.
#[derive(Clone, Copy)]
pub struct CalledSpan {
    pub name: &'static str,
    pub calls: u64,
    /// The instructions of one call, without those of spans inside; 0 if they are not counted.
    pub instructions: u64,
    /// How often each call is entered.
    pub polls: u64,
}

pub fn called(name: &'static str, calls: u64, instructions: u64) -> CalledSpan {
    CalledSpan { name, calls, instructions, polls: 1 }
}

/// A span of a future, which is entered for each poll.
pub fn polled(name: &'static str, calls: u64, instructions: u64) -> CalledSpan {
    CalledSpan { polls: 2, ..called(name, calls, instructions) }
}

/// Records a span `main`, with the calls of `spans` in it, and captures the ring.
pub fn capture(directory: &TempDir, name: &str, spans: &[CalledSpan]) -> String {
    capture_of_ring(directory, name, spans, (16, 22), false)
}

/// Does the same with a ring that is too small for the spans, so the first events are lost.
pub fn capture_with_losses(directory: &TempDir, name: &str, spans: &[CalledSpan]) -> String {
    capture_of_ring(directory, name, spans, (15, 21), false)
}

/// Does the same, and leaves the last span open.
pub fn capture_with_an_open_span(directory: &TempDir, name: &str, spans: &[CalledSpan]) -> String {
    capture_of_ring(directory, name, spans, (16, 22), true)
}

fn capture_of_ring(
    directory: &TempDir,
    name: &str,
    spans: &[CalledSpan],
    shifts: (u32, u32),
    leaves_one_open: bool,
) -> String {
    let ring = place(directory, name);
    let recorder = typed_in::<PerfEvent>(&ring)
        .compact(true)
        .shifts(shifts.0, shifts.1)
        .prefault(false)
        .keep(true)
        .build()
        .unwrap();
    let is_counted = spans.iter().any(|span| span.instructions > 0);
    let event = |event: PerfEvent, ext: PerfExt, payload: &[u8]| {
        _ = recorder.record(event.code(), PerfExt { thread_id: 1, ..ext }.to_words(), payload);
    };
    let mut count = u64::from(is_counted);
    // They are told again at the end, because the ring may have lost the first ones.
    let names = || std::iter::once("main").chain(spans.iter().map(|span| span.name)).enumerate();
    let describe = |(index, name): (usize, &str)| {
        let view = CallSiteView {
            kind: CallSiteKind::Span,
            level: CallSiteLevel::Info,
            name: name.into(),
            target: "shop".into(),
            module: "".into(),
            file: "shop.rs".into(),
            line: 1,
            field_names: vec![],
        };
        event(PerfEvent::CallSite, PerfExt { call_site_id: index as u32 + 1, ..PerfExt::default() }, &view.encode());
    };
    names().for_each(describe);
    let of = |span_id, call_site_id, related| PerfExt { span_id, call_site_id, related, ..PerfExt::default() };
    event(PerfEvent::SpanNew, of(1, 1, 0), &[]);
    event(PerfEvent::SpanEnter, of(1, 1, count), &[]);
    let mut id = 1;
    for (index, span) in spans.iter().enumerate() {
        if index + 1 == spans.len() {
            names().for_each(describe);
        }
        let call_site = index as u32 + 2;
        for _ in 0..span.calls {
            id += 1;
            event(PerfEvent::SpanNew, of(id, call_site, 1), &[]);
            for _ in 0..span.polls {
                event(PerfEvent::SpanEnter, of(id, call_site, count), &[]);
                count += span.instructions / span.polls;
                event(PerfEvent::SpanExit, of(id, call_site, count), &[]);
            }
            event(PerfEvent::SpanClose, of(id, call_site, 0), &[]);
        }
    }
    if leaves_one_open {
        id += 1;
        event(PerfEvent::SpanNew, of(id, spans.len() as u32 + 1, 1), &[]);
        event(PerfEvent::SpanEnter, of(id, spans.len() as u32 + 1, count), &[]);
    }
    count += 10 * u64::from(is_counted);
    event(PerfEvent::SpanExit, of(1, 1, count), &[]);
    event(PerfEvent::SpanClose, of(1, 1, 0), &[]);
    let path = argument(&place(directory, &format!("{name}.evc"))).to_owned();
    run!("capture", &ring, "--now", "-o", &path).ends(0);
    path
}
