//! Tests of the engine's memory. It must be as large after twenty simulated minutes as after ten, and a million open
//! spans must take no more than the options promise. A child process runs the engine, so only its memory is measured.

use super::conditions::ConditionSet;
use super::fixture::{START, StreamFixture};
use super::observation::Observation;
use super::options::LiveOptions;
use super::state::LiveState;
use eventring::schema::perf::{PerfEvent, PerfExt};
use eventring_capture::condition::Condition;
use eventring_stress::child::{self, Talk};
use eventring_stress::test_name;
use std::path::Path;

const MILLI: u64 = 1_000_000;

/// Returns a line of the status of this process, in KiB.
fn status_kib(name: &str) -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix(name)).unwrap();
    line.trim_start_matches(':').trim().trim_end_matches(" kB").parse().unwrap()
}

/// Runs `measure` in a child process with an argument. Returns the numbers that it says.
fn in_child(test: &str, argument: &str, measure: impl FnOnce(&str) -> Vec<u64>) -> Vec<u64> {
    if let Some(argument) = child::part() {
        let said: Vec<String> = measure(&argument).iter().map(u64::to_string).collect();
        child::say(said.join(" "));
        std::process::exit(0);
    }
    let numbers = Talk::start(test, argument, Path::new("")).hear();
    println!("{argument}: {numbers}");
    numbers.split(' ').map(|number| number.parse().unwrap()).collect()
}

/// Returns a field with a number, as it lies in a ring.
fn field(index: u8, value: u64) -> Vec<u8> {
    [&[index, 2, 8, 0][..], &value.to_le_bytes()].concat()
}

/// Feeds an engine with twenty minutes: requests with queries, log records, threads that come and go, losses, and
/// spans whose close is lost. Returns the memory in KiB after ten simulated minutes, and at the end. With `keep`, the
/// watcher keeps what it sees of each closed span.
fn twenty_minutes(keep: bool) -> Vec<u64> {
    let conditions = ["open>60ms", "span=never dur>1s", "rate(span=request,10s)<1/h", "p99(span=query)>10s"];
    let conditions: Vec<Condition> = conditions.iter().map(|text| text.parse().unwrap()).collect();
    let mut set = ConditionSet::new(conditions);
    let mut stream = StreamFixture::new(&set.options(LiveOptions::new().open_spans_max(2000).names_max(64)));
    (1..=300).for_each(|id| stream.call_site(id, &format!("name {id}")));
    let (mut fired, mut kept) = (0_u64, Vec::new());
    let mut see = |observation: &Observation<'_>, state: LiveState<'_>| {
        set.see(observation, state, &mut |_, _, _| fired += 1);
        if let (true, Observation::SpanClosed(span)) = (keep, observation) {
            kept.push(span.span().clone());
        }
    };
    let mut at_ten_minutes = 0;
    // A step is 10 ms.
    for step in 0..120_000_u64 {
        let nanos = START + step * 10 * MILLI;
        let id = step * 4 + 1;
        let thread_id = step as u32 / 50 + 1;
        if step % 50 == 0 {
            stream.thread(thread_id, "worker");
        }
        let request = PerfExt { thread_id, field_count: 1, ..PerfExt::of_span(id, 1 + (step % 300) as u32) };
        let query = PerfExt { related: id, ..PerfExt { span_id: id + 1, ..request } };
        stream.push(nanos, PerfEvent::SpanNew, request, &field(0, step), &mut see);
        stream.push(nanos, PerfEvent::SpanEnter, request, &[], &mut see);
        stream.push(nanos + MILLI, PerfEvent::SpanNew, query, &field(0, step), &mut see);
        stream.push(nanos + MILLI, PerfEvent::Event, request, &field(0, step), &mut see);
        // Of one query in ten thousand, the close is lost. Of one in a thousand, it comes after 90 ms.
        match step {
            _ if step % 10_000 == 1 => stream.lose(),
            _ if step % 1000 == 2 => {}
            _ => stream.push(nanos + 2 * MILLI, PerfEvent::SpanClose, query, &[], &mut see),
        }
        if step % 1000 == 11 {
            let late = PerfExt::of_span(id + 1 - 4 * 9, 1);
            stream.push(nanos, PerfEvent::SpanClose, late, &[], &mut see);
        }
        stream.push(nanos + 3 * MILLI, PerfEvent::SpanExit, request, &[], &mut see);
        stream.push(nanos + 3 * MILLI, PerfEvent::SpanClose, request, &[], &mut see);
        if step % 50 == 49 {
            stream.push(nanos + 4 * MILLI, PerfEvent::ThreadEnded, request, &[], &mut see);
        }
        if step % 10 == 0 {
            stream.tick(nanos + 5 * MILLI, &mut see);
        }
        if step == 60_000 {
            at_ten_minutes = status_kib("VmRSS");
        }
    }
    let open = stream.state().open_spans().count() as u64;
    vec![at_ten_minutes, status_kib("VmRSS"), fired, open, stream.state().refused()]
}

#[test]
fn an_engine_takes_no_more_memory_after_twenty_minutes_than_after_ten() {
    let test = test_name!();
    let measured = in_child(test, "bounded", |argument| twenty_minutes(argument == "keep"));
    let growth = measured[1].saturating_sub(measured[0]);
    assert!(growth < 1 << 10, "{measured:?}");
    // All that are not tested at a tick are tested at their close.
    assert!(measured[2] >= 120 && measured[3] == 12 && measured[4] == 0, "{measured:?}");
    let control = in_child(test, "keep", |argument| twenty_minutes(argument == "keep"));
    assert!(control[1].saturating_sub(control[0]) > 16 << 10, "{control:?}");
}

/// Opens a million spans with a few fields, and enters them. Returns the peak of the memory in KiB.
fn a_million_open_spans(argument: &str) -> Vec<u64> {
    let (fields, is_known) = (if argument == "many fields" { 40 } else { 3 }, argument != "unknown");
    let mut stream = StreamFixture::new(&LiveOptions::new());
    if is_known {
        stream.call_site(1, "task");
        stream.thread(1, "worker");
    }
    let before = status_kib("VmHWM");
    let payload: Vec<u8> = (0..fields).flat_map(|index| field(index as u8, 7)).collect();
    for id in 1..=1_000_000 {
        let ext = PerfExt { thread_id: 1, field_count: fields, ..PerfExt::of_span(id, 1) };
        stream.quiet(START + id, PerfEvent::SpanNew, ext, &payload);
    }
    let open = stream.state().replayed.replays[0].len() as u64;
    vec![before, status_kib("VmHWM"), open]
}

#[test]
fn a_million_open_spans_take_no_more_memory_than_the_options_promise() {
    let test = test_name!();
    for (argument, most_mib) in [("few fields", 950), ("many fields", 1350), ("unknown", 1200)] {
        let measured = in_child(test, argument, a_million_open_spans);
        let mib = (measured[1] - measured[0]) >> 10;
        assert!(measured[2] == 1_000_000 && mib <= most_mib, "{argument}: {mib} MiB");
        assert!(mib > 100, "nothing was measured: {mib} MiB");
    }
}
