//! Captures with random content, for tests of all formats.

use eventring::reader::GapCause;
use eventring::schema::perf::{CallSiteKind, PerfEvent, PerfExt, ValueType};
use eventring_capture::CaptureFile;
use eventring_capture::fixtures::{CaptureFixture, int, text};
use proptest::prelude::*;
use std::collections::BTreeMap;
use std::path::Path;

/// Returns the files of a directory by their names.
pub fn files_of(directory: &Path) -> BTreeMap<String, Vec<u8>> {
    let files = std::fs::read_dir(directory).unwrap().map(|file| file.unwrap());
    files
        .map(|file| {
            (file.file_name().into_string().unwrap(), eventring::internal::shm::read_file(file.path()).unwrap())
        })
        .collect()
}

/// An element of a capture with any content.
#[derive(Clone, Debug)]
pub enum Element {
    /// The id, the name and the fields.
    CallSite(u32, String, Vec<String>),
    /// The id and the name.
    Thread(u32, String),
    /// The id, the call site, and the values of fields.
    SpanNew(u64, u32, String, i64),
    /// An event of a ring: the code, the time, the extension words, and the payload.
    Event(usize, u16, u64, [u64; 4], Vec<u8>),
    /// The ring, and the number of events.
    Gap(usize, u64),
}

/// Makes an element of a capture.
pub fn any_element() -> impl Strategy<Value = Element> {
    let text = || prop_oneof![".{0,9}", Just("stream".to_owned()), Just("a\"b\\\0\n*/".to_owned())];
    let nanos = || prop_oneof![9 => 1000..9000_u64, 1 => any::<u64>()];
    let payload = || prop::collection::vec(any::<u8>(), 0..60);
    let words = (any::<u64>(), 0..9_u32, 0..9_u32, 0..4_u16, 0..12_u8).prop_map(
        |(related, call_site_id, thread_id, field_count, value_type)| PerfExt {
            span_id: related % 5,
            related,
            call_site_id,
            thread_id,
            field_count,
            value_type,
            ..PerfExt::default()
        },
    );
    let call_site = (0..9_u32, text(), prop::collection::vec(text(), 0..5));
    prop_oneof![
        call_site.prop_map(|(id, name, fields)| Element::CallSite(id, name, fields)),
        (0..9_u32, text()).prop_map(|(id, name)| Element::Thread(id, name)),
        (1..5_u64, 0..9_u32, text(), any::<i64>()).prop_map(|(id, site, text, n)| Element::SpanNew(id, site, text, n)),
        (0..16_u16, nanos(), words, payload()).prop_map(|(code, nanos, words, payload)| Element::Event(
            0,
            code,
            nanos,
            words.to_words(),
            payload
        )),
        (0..32_u16, nanos(), any::<[u64; 4]>(), payload())
            .prop_map(|(code, nanos, words, payload)| Element::Event(1, code, nanos, words, payload)),
        (0..2_usize, 1..1_u64 << 40).prop_map(|(ring, count)| Element::Gap(ring, count)),
    ]
}

/// Makes a capture of these elements.
pub fn capture_of(elements: &[Element]) -> CaptureFile {
    let mut made = CaptureFixture::new();
    for (element, nanos) in elements.iter().zip(1000..) {
        match element {
            Element::CallSite(id, name, fields) => {
                let fields: Vec<&str> = fields.iter().map(String::as_str).collect();
                made.call_site(nanos, *id, CallSiteKind::Span, name, &fields);
            }
            Element::Thread(id, name) => made.thread(nanos, *id, name),
            Element::SpanNew(id, call_site, value, number) => {
                let bytes = [&[2, ValueType::F64 as u8, 8, 0][..], &number.to_le_bytes()].concat();
                made.span_new(nanos, 1, (*id, 0), *call_site, &[text(0, value), int(1, *number), bytes]);
            }
            Element::Event(ring, code, nanos, words, payload) => made.event(*ring, *code, *nanos, *words, payload),
            Element::Gap(ring, count) => made.gap(*ring, *count, GapCause::Overwritten),
        }
    }
    made.open()
}

/// Makes a capture with a request, two concurrent queries of it on two threads, a typed event, a log record, a
/// counter, a loss, and an open span.
pub fn everything() -> CaptureFile {
    let mut made = CaptureFixture::new();
    made.thread(1000, 1, "main");
    made.thread(1001, 2, "worker");
    made.call_site(1002, 1, CallSiteKind::Span, "request", &["path", "status"]);
    made.call_site(1003, 2, CallSiteKind::Span, "query", &["rows"]);
    made.call_site(1004, 3, CallSiteKind::Event, "event src/web.rs:13", &["message", "left"]);
    made.call_site(1005, 4, CallSiteKind::Counter, "connections", &[]);
    made.span_new(2000, 1, (1, 0), 1, &[text(0, "/buy; now")]);
    made.span(PerfEvent::SpanEnter, 2100, 1, 1, 1);
    made.span_new(2200, 1, (2, 1), 2, &[]);
    made.span_new(2300, 1, (3, 1), 2, &[]);
    made.span(PerfEvent::SpanEnter, 2400, 1, 2, 2);
    made.span(PerfEvent::SpanEnter, 2450, 2, 3, 2);
    made.event(1, 20, 2500, [7, 3, 0, 2], b"");
    let in_query = PerfExt { span_id: 3, call_site_id: 3, thread_id: 2, field_count: 2, ..PerfExt::default() };
    made.perf(PerfEvent::Event, 2600, in_query, &[text(0, "slow query"), int(1, -5)].concat());
    let sample =
        PerfExt { related: 12, call_site_id: 4, thread_id: 1, value_type: ValueType::U64 as u8, ..PerfExt::default() };
    made.perf(PerfEvent::Counter, 2650, sample, &[]);
    made.span(PerfEvent::SpanExit, 2700, 1, 2, 2);
    made.span(PerfEvent::SpanClose, 2710, 1, 2, 2);
    let late = PerfExt { span_id: 1, call_site_id: 1, thread_id: 1, field_count: 1, ..PerfExt::default() };
    made.perf(PerfEvent::SpanRecord, 2720, late, &int(1, 200));
    made.span(PerfEvent::SpanExit, 2800, 1, 1, 1);
    made.span(PerfEvent::SpanExit, 2850, 2, 3, 2);
    made.span(PerfEvent::SpanClose, 2900, 2, 3, 2);
    made.span(PerfEvent::SpanClose, 3001, 2, 1, 1);
    made.gap(0, 40, GapCause::Overwritten);
    made.gap(0, 2, GapCause::NeverCommitted);
    made.event(1, 20, 3100, [7, 0, 0, 0], b"");
    made.span_new(4000, 1, (60, 0), 1, &[]);
    made.span(PerfEvent::SpanEnter, 4100, 1, 60, 1);
    made.open()
}
