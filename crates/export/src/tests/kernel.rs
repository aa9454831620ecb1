//! The kernel's data, joined with spans of known times.

use super::thread_times::{measured, states};
use super::{chrome_events, exported};
use crate::{ExportOptions, Format, View, Weight, export, summarize};
use eventring::schema::perf::{CallSiteKind, PerfEvent};
use eventring::schema::{EventPayload, EventType as _, Utf8};
use eventring_capture::CaptureFile;
use eventring_capture::fixtures::CaptureFixture;
use eventring_profile::schema::{
    OffState, Resolved, Sample, SampleKind, Sched, Session, Stack, Stacks, SwitchedIn, SwitchedOut, ThreadEnded,
    ThreadName, ThreadSeen, Woken,
};
use proptest::prelude::*;

/// The thread with the number 1 in the ring, as the system numbers it.
const THREAD: u32 = 4712;
const NAME: ThreadName = [Utf8(b'x'); 16];

struct Made {
    fixture: CaptureFixture,
    sched: usize,
    stacks: usize,
}

impl Made {
    fn new() -> Self {
        let mut fixture = CaptureFixture::new();
        fixture.call_site(900, 7, CallSiteKind::Span, "request", &[]);
        fixture.call_site(900, 8, CallSiteKind::Span, "query", &[]);
        fixture.thread(900, 1, "worker");
        let (sched, stacks) = (fixture.ring_of::<Sched>("shop-sched"), fixture.ring_of::<Stacks>("shop-stacks"));
        let mut made = Self { fixture, sched, stacks };
        made.sched(900, Sched::ThreadSeen, &ThreadSeen { process_id: 4711, thread_id: THREAD, name: NAME });
        made
    }

    fn event(&mut self, ring: usize, code: u16, nanos: u64, payload: &impl EventPayload, trailing: &[u8]) {
        payload.with_bytes(|bytes| self.fixture.event(ring, code, nanos, [0; 4], &[bytes, trailing].concat()));
    }

    fn sched(&mut self, nanos: u64, event: Sched, payload: &impl EventPayload) {
        self.event(self.sched, event.code(), nanos, payload, &[]);
    }

    fn begin(&mut self, nanos: u64, id: u64, parent: u64, site: u32) {
        self.fixture.span_new(nanos, 1, (id, parent), site, &[]);
        self.fixture.span(PerfEvent::SpanEnter, nanos, 1, id, site);
    }

    fn end(&mut self, nanos: u64, id: u64, site: u32) {
        self.fixture.span(PerfEvent::SpanExit, nanos, 1, id, site);
        self.fixture.span(PerfEvent::SpanClose, nanos, 1, id, site);
    }

    fn out(&mut self, nanos: u64, state: OffState, stack_id: u64) {
        let left = SwitchedOut {
            thread_id: THREAD,
            next_thread_id: 0,
            stack_id,
            syscall: 202,
            cpu: 0,
            state,
            next_name: [Utf8(0); 16],
        };
        self.sched(nanos, Sched::SwitchedOut, &left);
    }

    fn woken(&mut self, nanos: u64) {
        let (waker_thread_id, waker_process_id) = (THREAD, 4711);
        let woken = Woken { thread_id: THREAD, waker_thread_id, waker_process_id, cpu: 0, waker_name: NAME };
        self.sched(nanos, Sched::Woken, &woken);
    }

    fn back(&mut self, nanos: u64) {
        self.sched(nanos, Sched::SwitchedIn, &SwitchedIn { thread_id: THREAD, cpu: 0 });
    }

    fn stack(&mut self, nanos: u64, stack_id: u64, addresses: &[u64], kernel_frames: u32) {
        let stack = Stack { stack_id, kernel_frames, frames: addresses.len() as u32 };
        let bytes: Vec<u8> = addresses.iter().flat_map(|address| address.to_le_bytes()).collect();
        self.event(self.stacks, Stacks::Stack.code(), nanos, &stack, &bytes);
    }

    fn sample(&mut self, nanos: u64, stack_id: u64) {
        let sample = Sample { thread_id: THREAD, cpu: 0, kind: SampleKind::OnProcessor, stack_id };
        self.event(self.stacks, Stacks::Sample.code(), nanos, &sample, &[]);
    }

    fn name(&mut self, nanos: u64, address: u64, function: &str) {
        let resolved = Resolved { address, line: 7, function_bytes: function.len() as u32 };
        self.event(self.stacks, Stacks::Resolved.code(), nanos, &resolved, &[function.as_bytes(), b"a.rs"].concat());
    }
}

/// A request from 10,000 to 20,000 with a query from 12,000 to 18,000 in it.
fn made() -> CaptureFile {
    let mut made = Made::new();
    let session = Session {
        process_id: 4711,
        sample_hz: 1_000_000,
        clock_error_nanos: 7,
        has_sched: true,
        has_others: true,
        has_syscalls: true,
        has_stacks: true,
    };
    made.sched(900, Sched::Session, &session);
    made.stack(950, 1, &[0x90, 0x20, 0x10], 1);
    made.stack(950, 2, &[0x30, 0x10], 0);
    made.begin(10_000, 1, 0, 7);
    made.sample(10_500, 2);
    made.begin(12_000, 2, 1, 8);
    made.sample(12_500, 2);
    made.sample(12_600, 1);
    made.out(13_000, OffState::Sleeping, 1);
    made.woken(14_000);
    made.back(14_500);
    made.end(18_000, 2, 8);
    made.out(18_500, OffState::Runnable, 2);
    made.back(19_500);
    made.end(20_000, 1, 7);
    made.sample(20_500, 2);
    made.out(21_000, OffState::Sleeping, 0);
    for (address, function) in [(0x10, "main"), (0x20, "wait"), (0x30, "inlined"), (0x30, "work;hard")] {
        made.name(22_000, address, function);
    }
    made.fixture.open()
}

#[test]
fn times_of_threads_belong_to_the_innermost_span_and_those_around_it() {
    let summary = summarize(&made()).unwrap();
    let times = |name: &str| {
        let span = summary.spans.iter().find(|span| span.name == name).unwrap();
        let times = span.kernel.unwrap();
        assert_eq!(times.all.cpu + times.all.runnable + times.all.blocked + times.all.unknown, span.busy_nanos);
        [times.all, times.own].map(|times| (times.cpu, times.runnable, times.blocked, times.unknown))
    };
    assert_eq!(times("query"), [(4_500, 500, 1_000, 0); 2]);
    assert_eq!(times("request"), [(7_500, 1_500, 1_000, 0), (3_000, 1_000, 0, 0)]);
    let json = serde_json::to_value(&summary).unwrap();
    let request = &json["spans"][0];
    assert_eq!((&request["runnable_ns"], &request["self_runnable_ns"]), (&1_500.into(), &1_000.into()));
}

#[test]
fn folded_stacks_go_on_with_the_functions_of_the_program() {
    let capture = made();
    let folded = |weight: Weight| {
        let mut out = Vec::new();
        export(&capture, Format::Folded, ExportOptions::default().weight(weight), &mut out).unwrap();
        String::from_utf8(out).unwrap()
    };
    assert_eq!(
        folded(Weight::Cpu),
        "shop;[no span];main;work hard;inlined 1000\n\
         shop;request;main;work hard;inlined 1000\n\
         shop;request;query;main;wait;kernel+0x90 1000\n\
         shop;request;query;main;work hard;inlined 1000\n"
    );
    assert_eq!(folded(Weight::Blocked), "shop;[no span] 1000\nshop;request;query;main;wait;kernel+0x90 1000\n");
    assert_eq!(
        folded(Weight::Runnable),
        "shop;request;main;work hard;inlined 1000\nshop;request;query;main;wait;kernel+0x90 500\n"
    );
    // Without such a weight, nothing of this is there.
    assert_eq!(exported(&capture, Format::Folded, View::Thread), "shop;request 4000\nshop;request;query 6000\n");
}

#[test]
fn a_trace_has_a_row_of_states_with_arrows() {
    let events = chrome_events(&made(), View::Thread);
    let slices: Vec<(&str, f64)> = events
        .iter()
        .filter(|event| event["cat"] == "scheduler" && event["ph"] == "X")
        .map(|event| (event["name"].as_str().unwrap(), event["dur"].as_f64().unwrap()))
        .collect();
    assert_eq!(slices[1..5], [("blocked: futex", 1.0), ("runnable", 0.5), ("running", 4.0), ("runnable", 1.0)]);
    assert!(events.iter().any(|event| event["name"] == "wakes xxxxxxxxxxxxxxxx" && event["ph"] == "i"));
    let ends = |phase: &str| events.iter().filter(|event| event["name"] == "flow" && event["ph"] == phase).count();
    assert_eq!((ends("s"), ends("f")), (1, 1));
    let rows: Vec<_> =
        events.iter().filter(|event| event["name"] == "thread_name").map(|event| &event["args"]["name"]).collect();
    assert!(rows.contains(&&"states".into()) && rows.contains(&&"worker".into()), "{rows:?}");
}

#[test]
fn a_thread_that_measures_its_times_has_a_row_of_them_only_if_the_kernel_tells_none() {
    for is_told in [false, true] {
        let mut made = Made::new();
        made.begin(10_000, 1, 0, 7);
        if is_told {
            made.out(11_000, OffState::Sleeping, 0);
            made.back(12_000);
        }
        measured(&mut made.fixture, 13_000, 900, 11_100, 0);
        made.end(13_000, 1, 7);
        let capture = made.fixture.open();
        let events = chrome_events(&capture, View::Thread);
        let has_row = |name: &str| events.iter().any(|event| event["args"]["name"] == name);
        assert_eq!((has_row("states"), states(&capture).len()), if is_told { (true, 0) } else { (false, 2) });
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn the_parts_of_each_span_add_up(steps in prop::collection::vec((0_u8..6, 0_u64..500), 1..80)) {
        let mut made = Made::new();
        let (mut nanos, mut open, mut spans) = (10_000, Vec::new(), 0);
        for (what, after) in steps {
            nanos += after;
            match what {
                0 | 1 => {
                    spans += 1;
                    made.begin(nanos, spans, open.last().map_or(0, |(id, _)| *id), 7 + (spans % 2) as u32);
                    open.push((spans, 7 + (spans % 2) as u32));
                }
                2 => open.pop().into_iter().for_each(|(id, site)| made.end(nanos, id, site)),
                3 => made.out(nanos, if after % 2 == 0 { OffState::Runnable } else { OffState::Sleeping }, 0),
                4 => made.woken(nanos),
                _ => made.back(nanos),
            }
        }
        while let Some((id, site)) = open.pop() {
            nanos += 10;
            made.end(nanos, id, site);
        }
        made.back(nanos + 1);
        let capture = made.fixture.open();
        let summary = summarize(&capture).unwrap();
        let sum = |times: crate::KernelNanos| times.cpu + times.runnable + times.blocked + times.unknown;
        let own: u64 = summary.spans.iter().filter_map(|span| span.kernel).map(|times| sum(times.own)).sum();
        // All spans together have the time that the thread was in any, and none has less in all than of its own.
        let folded = exported(&capture, Format::Folded, View::Thread);
        let all: u64 = folded.lines().map(|line| line.rsplit_once(' ').unwrap().1.parse::<u64>().unwrap()).sum();
        if summary.spans.iter().any(|span| span.kernel.is_some()) {
            prop_assert_eq!(own, all);
        }
        for span in summary.spans {
            let times = span.kernel.unwrap_or_default();
            prop_assert!(sum(times.own) <= sum(times.all) && times.own.cpu <= times.all.cpu);
            prop_assert!(sum(times.all) <= span.busy_nanos);
        }
    }

    #[test]
    fn any_bytes_in_the_rings_of_the_kernel_are_read(
        events in prop::collection::vec((any::<bool>(), 0_u16..12, any::<u64>(), prop::collection::vec(any::<u8>(), 0..90)), 1..60)
    ) {
        let mut made = Made::new();
        made.begin(10_000, 1, 0, 7);
        for (is_sched, code, nanos, bytes) in events {
            let ring = if is_sched { made.sched } else { made.stacks };
            // Numbers of threads and stacks are small, so that they meet.
            let bytes: Vec<u8> = bytes.iter().enumerate().map(|(at, byte)| if at % 4 == 0 { byte % 4 } else { byte & 1 }).collect();
            made.fixture.event(ring, code, 10_000 + nanos % 100_000, [0; 4], &bytes);
        }
        let capture = made.fixture.open();
        let _ = summarize(&capture);
        for weight in [Weight::Cpu, Weight::Blocked, Weight::Runnable] {
            let _ = export(&capture, Format::Folded, ExportOptions::default().weight(weight), &mut std::io::sink());
        }
        for format in [Format::Perfetto, Format::Chrome, Format::Jsonl] {
            let _ = export(&capture, format, View::Both, &mut std::io::sink());
        }
    }
}

fn named(name: &str) -> ThreadName {
    let mut bytes = [Utf8(0); 16];
    bytes.iter_mut().zip(name.bytes()).for_each(|(to, from)| *to = Utf8(from));
    bytes
}

/// Two threads have had the number of the worker before, and a child of the program is a process of its own.
fn with_others() -> CaptureFile {
    let mut made = Made::new();
    let session = Session {
        process_id: 4711,
        sample_hz: 1_000_000,
        clock_error_nanos: 7,
        has_sched: true,
        has_others: true,
        has_syscalls: true,
        has_stacks: false,
    };
    made.sched(900, Sched::Session, &session);
    made.back(1_000);
    made.out(2_000, OffState::Ended, 0);
    made.sched(2_000, Sched::ThreadEnded, &ThreadEnded { thread_id: THREAD });
    made.sched(3_000, Sched::ThreadSeen, &ThreadSeen { process_id: 4711, thread_id: THREAD, name: named("second") });
    made.back(3_500);
    made.out(4_000, OffState::Ended, 0);
    made.sched(4_000, Sched::ThreadEnded, &ThreadEnded { thread_id: THREAD });
    made.sched(9_000, Sched::ThreadSeen, &ThreadSeen { process_id: 4711, thread_id: THREAD, name: named("worker") });
    made.back(9_500);
    made.begin(10_000, 1, 0, 7);
    made.end(11_000, 1, 7);
    made.out(12_000, OffState::Sleeping, 0);
    let child = |name| ThreadSeen { process_id: 5000, thread_id: 5000, name: named(name) };
    made.sched(13_000, Sched::ThreadSeen, &child("worker"));
    made.sched(14_000, Sched::SwitchedIn, &SwitchedIn { thread_id: 5000, cpu: 0 });
    let left = |state| SwitchedOut {
        thread_id: 5000,
        next_thread_id: 0,
        stack_id: 0,
        syscall: -1,
        cpu: 0,
        state,
        next_name: [Utf8(0); 16],
    };
    made.sched(15_000, Sched::SwitchedOut, &left(OffState::Runnable));
    made.sched(16_000, Sched::ThreadSeen, &child("sleep"));
    made.sched(17_000, Sched::SwitchedIn, &SwitchedIn { thread_id: 5000, cpu: 0 });
    made.sched(18_000, Sched::SwitchedOut, &left(OffState::Sleeping));
    made.back(19_000);
    made.out(20_000, OffState::Sleeping, 0);
    made.fixture.open()
}

#[test]
fn each_thread_has_its_own_row_in_its_own_process_with_its_last_name() {
    let events = chrome_events(&with_others(), View::Thread);
    let names = |kind: &str| -> Vec<(u64, u64, String)> {
        let rows = events.iter().filter(|event| event["name"] == kind);
        let row = |event: &serde_json::Value| {
            let name = event["args"]["name"].as_str().unwrap().to_owned();
            (event["pid"].as_u64().unwrap(), event["tid"].as_u64().unwrap(), name)
        };
        rows.map(row).collect()
    };
    let processes = names("process_name");
    assert!(processes.iter().any(|(pid, _, name)| (*pid, &**name) == (5000, "sleep")), "{processes:?}");
    let threads = names("thread_name");
    let of = |pid: u64, wanted: &str| threads.iter().filter(|(of, _, name)| (*of, &**name) == (pid, wanted)).count();
    assert_eq!((of(5000, "sleep"), of(5000, "worker")), (1, 0), "{threads:?}");
    let program = processes.iter().find(|(pid, ..)| *pid != 5000).unwrap().0;
    // The thread with spans has one row, and the two that had its number before have theirs.
    assert_eq!(["worker", "second", "xxxxxxxxxxxxxxxx"].map(|name| of(program, name)), [1; 3], "{threads:?}");
    let mut rows: Vec<u64> = threads.iter().map(|(_, tid, _)| *tid).collect();
    rows.sort_unstable();
    rows.dedup();
    assert_eq!(rows.len(), threads.len(), "{threads:?}");
    // In folded stacks, the time of the child is not the program's.
    let mut out = Vec::new();
    let options = ExportOptions::default().weight(Weight::Runnable);
    export(&with_others(), Format::Folded, options, &mut out).unwrap();
    let folded = String::from_utf8(out).unwrap();
    assert!(folded.lines().any(|line| line == "sleep;[no span] 2000"), "{folded}");
}
