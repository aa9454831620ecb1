//! Spans with times of the test's choice.

use eventring::reader::GapCause;
use eventring::schema::perf::{CallSiteKind, CallSiteLevel, PerfEvent, PerfExt, ThreadTime};
use eventring::schema::{EventPayload, EventType as _, Utf8};
use eventring_capture::CaptureFile;
use eventring_capture::fixtures::{CaptureFixture, int};
use eventring_profile::schema::{OffState, Sched, Session, SwitchedIn, SwitchedOut, ThreadSeen, Woken};
use eventring_profile::why::{Answer, Part, Question, Source, why};
use eventring_stress::random::Random;

const REQUEST: u32 = 7;
const QUERY: u32 = 8;

/// Returns a length as those of real spans: most about a millisecond, some a few times as long.
fn span_nanos(random: &mut Random) -> u64 {
    let steps = (0..40).take_while(|_| random.below(100) < 93).count() as u64;
    700_000 + 25_000 * steps + random.below(300_000)
}

/// Adds a request with a query in it. Returns its end.
fn request(made: &mut CaptureFixture, id: u64, from: u64, lengths: (u64, u64), shard: i64) -> u64 {
    let (own, query) = lengths;
    made.span_new(from, 1, (id, 0), REQUEST, &[int(0, shard)]);
    made.span(PerfEvent::SpanEnter, from, 1, id, REQUEST);
    let begin = from + own / 2;
    made.span_new(begin, 1, (id + 1, id), QUERY, &[]);
    made.span(PerfEvent::SpanEnter, begin, 1, id + 1, QUERY);
    made.span(PerfEvent::SpanExit, begin + query, 1, id + 1, QUERY);
    made.span(PerfEvent::SpanClose, begin + query, 1, id + 1, QUERY);
    let end = from + own + query;
    made.span(PerfEvent::SpanExit, end, 1, id, REQUEST);
    made.span(PerfEvent::SpanClose, end, 1, id, REQUEST);
    end
}

/// Makes 300 requests. `slow` says whether the query of one takes 30 ms.
fn answer(seed: u64, slow: impl Fn(u64) -> bool) -> Answer {
    let mut random = Random(seed * 0x9e37_79b9 + 1);
    let mut made = CaptureFixture::new();
    made.call_site(900, REQUEST, CallSiteKind::Span, "request", &["shard"]);
    made.call_site(901, QUERY, CallSiteKind::Span, "query", &[]);
    made.thread(902, 1, "worker");
    let mut at = 1_000_000;
    for number in 0..300 {
        let is_slow = slow(number);
        let query = if is_slow { 30_000_000 } else { span_nanos(&mut random) };
        let shard = if is_slow { 7 } else { (number % 5) as i64 };
        at = request(&mut made, 10 + 2 * number, at, (span_nanos(&mut random), query), shard) + 1000;
    }
    let question = Question { span: Some("request".into()), slowest: 3, id: None };
    why(&made.open(), &question).unwrap()
}

#[test]
fn of_a_hundred_recordings_without_a_slow_span_none_names_a_cause_or_a_difference() {
    for seed in 1..=100 {
        let answer = answer(seed, |_| false);
        assert_eq!((answer.count, answer.spans.len()), (300, 3));
        assert!(answer.spans.iter().all(|span| span.cause.is_none()), "{seed}: {:?}", answer.spans);
        assert!(answer.difference.is_empty(), "{seed}: {:?}", answer.difference);
    }
}

#[test]
fn slow_children_are_found_in_each_recording_and_the_shares_add_up() {
    for seed in 1..=100 {
        let answer = answer(seed, |number| number % 60 == 31);
        for span in &answer.spans {
            let cause = span.cause.as_ref().unwrap_or_else(|| panic!("{seed}: {span:?}"));
            assert_eq!(cause.kind.name(), "child");
            assert!(cause.evidence.starts_with("query took 30.0 ms of it, usually "), "{}", cause.evidence);
            assert_eq!(span.shares.total_nanos(), span.nanos);
            assert_eq!(span.shares.nanos(Part::Children), 30_000_000);
            // No scheduler was asked.
            assert_eq!(span.shares.nanos(Part::Unknown), span.nanos - 30_000_000);
        }
        let [found] = &answer.difference[..] else { panic!("{seed}: {:?}", answer.difference) };
        assert_eq!((found.what.as_str(), found.slow, found.normal), ("field.shard=7", 100.0, 0.0));
    }
}

/// For each turn, whatever looks at all turns again takes minutes.
#[test]
fn a_span_that_is_entered_very_often_is_divided_by_one_look_at_each_enter() {
    const TURNS: u64 = 60_000;
    let mut made = CaptureFixture::new();
    made.call_site(900, REQUEST, CallSiteKind::Span, "request", &[]);
    made.call_site(901, QUERY, CallSiteKind::Span, "query", &[]);
    made.thread(902, 1, "worker");
    made.thread(903, 2, "other");
    made.span_new(1000, 1, (1, 0), REQUEST, &[]);
    for turn in 0..TURNS {
        let (at, query) = (1000 + 30 * turn, 2 + turn);
        made.span(PerfEvent::SpanEnter, at, 1, 1, REQUEST);
        made.span_new(at + 10, 1, (query, 1), QUERY, &[]);
        made.span(PerfEvent::SpanEnter, at + 10, 1, query, QUERY);
        made.span(PerfEvent::SpanExit, at + 15, 1, query, QUERY);
        made.span(PerfEvent::SpanClose, at + 15, 1, query, QUERY);
        // Another thread is in it at the same time, and for 3 ns more.
        made.span(PerfEvent::SpanEnter, at + 16, 2, 1, REQUEST);
        made.span(PerfEvent::SpanExit, at + 20, 1, 1, REQUEST);
        made.span(PerfEvent::SpanExit, at + 23, 2, 1, REQUEST);
        if turn % 1000 == 0 {
            made.end_block();
        }
    }
    made.span(PerfEvent::SpanClose, 1000 + 30 * TURNS, 1, 1, REQUEST);
    let question = Question { span: Some("request".into()), slowest: 1, id: None };
    let answer = why(&made.open(), &question).unwrap();
    let parts = Part::ALL.map(|part| answer.spans[0].shares.nanos(part)).map(|nanos| nanos / TURNS);
    assert_eq!(parts, [0, 5, 0, 0, 0, 7, 18], "in each turn, by {:?}", Part::ALL);
}

const TASK: u32 = 1;
const WOKEN: u32 = 2;

/// Adds a task with a request in it, which is polled twice: before it waits `idle`, and after it was woken and waited
/// `ready` for a worker, which was in a span of its own for `busy` of this. Returns its end.
fn task(made: &mut CaptureFixture, id: u64, from: u64, idle: u64, ready: u64, has_wakes: bool) -> u64 {
    const POLL: u64 = 10_000;
    let enter = |made: &mut CaptureFixture, at| {
        made.span(PerfEvent::SpanEnter, at, 1, id, TASK);
        made.span(PerfEvent::SpanEnter, at, 1, id + 1, REQUEST);
    };
    let exit = |made: &mut CaptureFixture, at| {
        made.span(PerfEvent::SpanExit, at, 1, id + 1, REQUEST);
        made.span(PerfEvent::SpanExit, at, 1, id, TASK);
    };
    made.span_new(from, 1, (id, 0), TASK, &[]);
    made.span_new(from, 1, (id + 1, id), REQUEST, &[]);
    enter(made, from);
    exit(made, from + POLL);
    let woken = from + POLL + idle;
    if has_wakes {
        made.span(PerfEvent::Event, woken, 2, id, WOKEN);
    }
    if ready > 1_000_000 {
        // The worker is in something else, but not until the end: the heuristic by the worker sees nothing.
        made.span_new(woken, 1, (id + 2, 0), QUERY, &[]);
        made.span(PerfEvent::SpanEnter, woken, 1, id + 2, QUERY);
        made.span(PerfEvent::SpanExit, woken + ready - 500_000, 1, id + 2, QUERY);
        made.span(PerfEvent::SpanClose, woken + ready - 500_000, 1, id + 2, QUERY);
    }
    let polled = woken + ready;
    enter(made, polled);
    exit(made, polled + POLL);
    made.span(PerfEvent::SpanClose, polled + POLL, 1, id + 1, REQUEST);
    made.span(PerfEvent::SpanClose, polled + POLL, 1, id, TASK);
    polled + POLL
}

fn of_tasks(ready: u64, idle: u64, has_wakes: bool) -> Answer {
    let mut made = CaptureFixture::new();
    let kind = |kind| (kind, CallSiteLevel::Info);
    made.call_site_in(900, TASK, kind(CallSiteKind::Span), ("eventring::task", "task"), &["name"]);
    made.call_site_in(901, WOKEN, kind(CallSiteKind::Event), ("eventring::task", "woken"), &["message"]);
    made.call_site(902, REQUEST, CallSiteKind::Span, "request", &[]);
    made.call_site(903, QUERY, CallSiteKind::Span, "query", &[]);
    made.thread(904, 1, "worker");
    made.thread(905, 2, "driver");
    let mut at = 1_000_000;
    for number in 0..300 {
        let is_slow = number % 60 == 31;
        let (idle, ready) = if is_slow { (idle, ready) } else { (900_000 + number * 300, 20_000) };
        at = task(&mut made, 10 + 3 * number, at, idle, ready, has_wakes) + 1000;
    }
    let question = Question { span: Some("request".into()), slowest: 3, id: None };
    why(&made.open(), &question).unwrap()
}

#[test]
fn the_time_from_wake_to_poll_is_the_executors_and_the_time_before_the_wake_is_waiting() {
    for span in &of_tasks(40_000_000, 1_000_000, true).spans {
        let cause = span.cause.as_ref().unwrap();
        assert_eq!(cause.kind.name(), "executor", "{cause:?}");
        assert!(cause.evidence.contains("its worker was in query"), "{cause:?}");
        assert_eq!((span.shares.nanos(Part::Executor), span.shares.nanos(Part::Waiting)), (40_000_000, 1_000_000));
    }
    for span in &of_tasks(20_000, 40_000_000, true).spans {
        assert_eq!(span.cause.as_ref().unwrap().kind.name(), "waiting");
        assert_eq!((span.shares.nanos(Part::Executor), span.shares.nanos(Part::Waiting)), (20_000, 40_000_000));
    }
    // The control: without wakes, the worker alone is judged, and it did nothing just before.
    for span in &of_tasks(40_000_000, 1_000_000, false).spans {
        assert_eq!((span.shares.nanos(Part::Executor), span.shares.nanos(Part::Waiting)), (0, 41_000_000));
    }
}

/// Makes tasks that yield to their executor. It wakes them when it has done what else there is: here a query of 40 ms
/// for one in sixty. `waker` is the thread that wakes them.
fn yielding(waker: u32) -> Answer {
    let mut made = CaptureFixture::new();
    let kind = |kind| (kind, CallSiteLevel::Info);
    made.call_site_in(900, TASK, kind(CallSiteKind::Span), ("eventring::task", "task"), &["name"]);
    made.call_site_in(901, WOKEN, kind(CallSiteKind::Event), ("eventring::task", "woken"), &["message"]);
    made.call_site(903, QUERY, CallSiteKind::Span, "query", &[]);
    made.thread(904, 1, "worker");
    made.thread(905, 2, "other");
    let mut at = 1_000_000;
    for number in 0..300 {
        let (id, query) = (10 + 2 * number, if number % 60 == 31 { 40_000_000 } else { 100_000 });
        let poll = |made: &mut CaptureFixture, at: u64, id, site, nanos: u64| {
            made.span(PerfEvent::SpanEnter, at, 1, id, site);
            made.span(PerfEvent::SpanExit, at + nanos, 1, id, site);
        };
        made.span_new(at, 1, (id, 0), TASK, &[]);
        poll(&mut made, at, id, TASK, 10_000);
        made.span_new(at + 11_000, 1, (id + 1, 0), QUERY, &[]);
        poll(&mut made, at + 11_000, id + 1, QUERY, query);
        let done = at + 11_000 + query;
        made.span(PerfEvent::SpanClose, done, 1, id + 1, QUERY);
        made.span(PerfEvent::Event, done + 1_000, waker, id, WOKEN);
        poll(&mut made, done + 2_000, id, TASK, 10_000);
        at = done + 12_000;
        made.span(PerfEvent::SpanClose, at, 1, id, TASK);
        at += 1_000;
    }
    why(&made.open(), &Question { span: Some("task".into()), slowest: 3, id: None }).unwrap()
}

#[test]
fn a_wake_that_a_busy_worker_has_put_off_does_not_hide_that_the_worker_was_busy() {
    for span in &yielding(1).spans {
        let cause = span.cause.as_ref().unwrap();
        assert_eq!(cause.kind.name(), "executor", "{cause:?}");
        assert!(cause.evidence.contains("its worker was in query"), "{cause:?}");
        assert!(span.shares.nanos(Part::Executor) >= 40_000_000, "{span:?}");
    }
    // Another thread wakes it when there is something to do. Until then, no worker could have polled it.
    for span in &yielding(2).spans {
        assert_eq!(span.cause.as_ref().unwrap().kind.name(), "waiting");
    }
}

/// The thread with the number 1 in the ring, as the system numbers it.
const WORKER: u32 = 4712;

fn add(made: &mut CaptureFixture, ring: usize, nanos: u64, event: Sched, payload: &impl EventPayload) {
    payload.with_bytes(|bytes| made.event(ring, event.code(), nanos, [0; 4], bytes));
}

/// Begins to say what threads do.
fn begin_sched(made: &mut CaptureFixture, ring: usize, nanos: u64) {
    let seen = ThreadSeen { process_id: 4711, thread_id: WORKER, name: [Utf8(b'x'); 16] };
    add(made, ring, nanos, Sched::ThreadSeen, &seen);
    add(made, ring, nanos, Sched::Session, &SESSION);
}

const SESSION: Session = Session {
    process_id: 4711,
    sample_hz: 0,
    clock_error_nanos: 7,
    has_sched: true,
    has_others: true,
    has_syscalls: true,
    has_stacks: false,
};

/// Makes requests that compute for a millisecond, and slow ones that are off the processor forty times in between, for
/// these times: blocked, and woken without a processor.
fn often_off(blocked: u64, ready: u64) -> Answer {
    let mut made = CaptureFixture::new();
    made.call_site(900, REQUEST, CallSiteKind::Span, "request", &[]);
    made.thread(902, 1, "worker");
    let sched = made.ring_of::<Sched>("shop-sched");
    begin_sched(&mut made, sched, 950);
    add(&mut made, sched, 960, Sched::SwitchedIn, &SwitchedIn { thread_id: WORKER, cpu: 0 });
    let mut at = 1_000_000;
    for number in 0..300 {
        made.span_new(at, 1, (10 + number, 0), REQUEST, &[]);
        made.span(PerfEvent::SpanEnter, at, 1, 10 + number, REQUEST);
        at += 1_000_000;
        for _ in 0..if number % 60 == 31 { 40 } else { 0 } {
            at += 440_000;
            let left = SwitchedOut {
                thread_id: WORKER,
                next_thread_id: 0,
                stack_id: 0,
                syscall: -1,
                cpu: 0,
                state: OffState::Uninterruptible,
                next_name: [Utf8(0); 16],
            };
            add(&mut made, sched, at, Sched::SwitchedOut, &left);
            let waker_name = [Utf8(0); 16];
            let woken = Woken { thread_id: WORKER, waker_thread_id: 0, waker_process_id: 0, cpu: 0, waker_name };
            add(&mut made, sched, at + blocked, Sched::Woken, &woken);
            at += blocked + ready;
            add(&mut made, sched, at, Sched::SwitchedIn, &SwitchedIn { thread_id: WORKER, cpu: 0 });
        }
        made.span(PerfEvent::SpanExit, at, 1, 10 + number, REQUEST);
        made.span(PerfEvent::SpanClose, at, 1, 10 + number, REQUEST);
        at += 1_000;
    }
    why(&made.open(), &Question { span: Some("request".into()), slowest: 3, id: None }).unwrap()
}

#[test]
fn the_waits_for_a_processor_after_many_short_waits_belong_to_these() {
    // Neither is two fifths of the time, and they are so together.
    for span in &often_off(390_000, 280_000).spans {
        assert_eq!(span.cause.as_ref().unwrap().kind.name(), "io", "{span:?}");
        let parts = [Part::Computing, Part::Blocked, Part::Runnable].map(|part| span.shares.nanos(part));
        assert_eq!(parts, [1_000_000 + 40 * 440_000, 40 * 390_000, 40 * 280_000]);
    }
    // A thread that waits mostly for processors does not wait for a device.
    for span in &often_off(10_000, 600_000).spans {
        assert_eq!(span.cause.as_ref().unwrap().kind.name(), "processor", "{span:?}");
    }
}

#[test]
fn spans_that_began_before_the_scheduler_was_recorded_are_named_among_what_is_missing() {
    let mut made = CaptureFixture::new();
    made.call_site(900, REQUEST, CallSiteKind::Span, "request", &[]);
    made.thread(902, 1, "worker");
    let (sched, begin) = (made.ring_of::<Sched>("shop-sched"), 5_000_000);
    for (id, from) in [(10, 1_000_000), (11, 2_000_000), (12, 6_000_000)] {
        made.span_new(from, 1, (id, 0), REQUEST, &[]);
        made.span(PerfEvent::SpanEnter, from, 1, id, REQUEST);
    }
    begin_sched(&mut made, sched, begin);
    add(&mut made, sched, begin + 1_000, Sched::SwitchedIn, &SwitchedIn { thread_id: WORKER, cpu: 0 });
    for id in [12, 11, 10] {
        made.span(PerfEvent::SpanExit, 7_000_000, 1, id, REQUEST);
        made.span(PerfEvent::SpanClose, 7_000_000, 1, id, REQUEST);
    }
    let capture = made.open();
    let missing = |slowest| why(&capture, &Question { span: None, slowest, id: None }).unwrap().missing;
    assert_eq!(
        missing(3),
        ["what threads did before the scheduler was recorded: 2 spans began earlier, by up to 4.00 ms"]
    );
    let question = Question { span: None, slowest: 1, id: Some(12) };
    assert!(why(&capture, &question).unwrap().missing.is_empty());
}

#[test]
fn switches_that_were_not_recorded_and_a_clock_that_was_set_are_named_among_what_is_missing() {
    let missing = |session: Session| {
        let mut made = CaptureFixture::new();
        made.call_site(900, REQUEST, CallSiteKind::Span, "request", &[]);
        made.thread(902, 1, "worker");
        let sched = made.ring_of::<Sched>("shop-sched");
        add(&mut made, sched, 950, Sched::Session, &session);
        request(&mut made, 10, 1_000_000, (1_000, 1_000), 1);
        why(&made.open(), &Question { span: Some("request".into()), ..Question::default() }).unwrap().missing
    };
    assert!(missing(SESSION).is_empty());
    let alone = missing(Session { has_sched: false, has_stacks: true, ..SESSION });
    assert!(alone.len() == 1 && alone[0].starts_with("the scheduler: whether a thread computed"), "{alone:?}");
    let set = missing(Session { clock_error_nanos: 3_000_000_000, ..SESSION });
    let expected =
        "exact times: some are wrong by up to 3.00 s, because a clock was set while the profile was recorded";
    assert_eq!(set, [expected]);
}

#[test]
fn an_id_that_several_programs_have_is_refused_with_the_names_of_the_spans() {
    let directory = tempfile::tempdir().unwrap();
    let capture = |pid: u32, name: &str| {
        let mut made = CaptureFixture::of_process(pid);
        made.call_site(900, REQUEST, CallSiteKind::Span, name, &["shard"]);
        made.call_site(901, QUERY, CallSiteKind::Span, "query", &[]);
        request(&mut made, 10, 1_000_000, (1_000, 1_000), 1);
        let path = directory.path().join(format!("{pid}.evc"));
        let mut file = made.file();
        std::io::Seek::rewind(&mut file).unwrap();
        std::io::copy(&mut file, &mut std::fs::File::create(&path).unwrap()).unwrap();
        path
    };
    let both = CaptureFile::open_all(&[capture(1, "load"), capture(2, "store")]).unwrap();
    let ask = |span: Option<&str>| {
        let span = span.map(str::to_owned);
        why(&both, &Question { span, slowest: 1, id: Some(10) }).map(|answer| answer.spans[0].name.clone())
    };
    let expected =
        "several programs have a span with the id 10: shop::web::load and shop::web::store; name one capture";
    assert_eq!(ask(None).unwrap_err().to_string(), expected);
    assert_eq!(ask(Some("store")).unwrap(), "shop::web::store");
    let no_query = "no span query with the id 10 has ended in the capture; `summary` shows which there are";
    assert_eq!(ask(Some("query")).unwrap_err().to_string(), no_query);
}

#[test]
fn what_was_overwritten_before_the_capture_is_counted_apart_from_what_was_lost() {
    let mut made = CaptureFixture::new();
    made.gap(0, 1_234_567, GapCause::OverwrittenBefore);
    made.call_site(900, REQUEST, CallSiteKind::Span, "request", &[]);
    request(&mut made, 10, 1_000_000, (1_000, 1_000), 1);
    let counts = |made: CaptureFixture| {
        let missing = why(&made.open(), &Question::default()).unwrap().missing;
        missing.into_iter().filter(|line| line.contains("events")).collect::<Vec<_>>()
    };
    let past = "the past: 1,234,567 events had been overwritten before the capture began";
    assert_eq!(counts(made), [past]);
    let mut made = CaptureFixture::new();
    made.gap(0, 4_321, GapCause::Overwritten);
    made.call_site(900, REQUEST, CallSiteKind::Span, "request", &[]);
    request(&mut made, 10, 1_000_000, (1_000, 1_000), 1);
    assert_eq!(counts(made), ["what happened when 4,321 events got lost"]);
}

/// How a thread spent a moment in which it was not on its processor, as it says itself.
#[derive(Clone, Copy, Default)]
struct Off {
    sleep: u64,
    queue: u64,
    faults: u32,
    /// How often the thread has left its processor before, without asking the kernel.
    merged: u32,
}

/// Makes requests that compute for a millisecond. The thread of slow ones is off its processor in between: in the
/// request itself, or in a query inside of it.
fn by_own_times(off: Off, is_in_query: bool) -> Answer {
    let mut made = CaptureFixture::new();
    made.call_site(900, REQUEST, CallSiteKind::Span, "request", &[]);
    made.call_site(901, QUERY, CallSiteKind::Span, "query", &[]);
    made.thread(902, 1, "worker");
    let mut since = 950;
    let mut measured = |made: &mut CaptureFixture, at: u64, span_id: u64, off: Off| {
        let times = ThreadTime {
            since_epoch_nanos: since,
            cpu_nanos: at - since - off.sleep - off.queue,
            queue_nanos: off.queue,
            voluntary_switches: u32::from(off.sleep > 0).max(off.faults),
            involuntary_switches: u32::from(off.sleep == 0),
            major_faults: off.faults,
            merged: off.merged,
            ..ThreadTime::default()
        };
        since = at;
        let ext = PerfExt { span_id, thread_id: 1, ..PerfExt::default() };
        times.with_bytes(|bytes| made.perf(PerfEvent::ThreadTime, at, ext, bytes));
    };
    measured(&mut made, 960, 0, Off::default());
    let mut at = 1_000_000;
    for number in 0..300 {
        let (id, is_slow) = (10 + 2 * number, number % 60 == 31);
        made.span_new(at, 1, (id, 0), REQUEST, &[]);
        made.span(PerfEvent::SpanEnter, at, 1, id, REQUEST);
        let begin = at + 500_000;
        let end = begin + if is_slow { off.sleep + off.queue } else { 1_000 };
        if is_in_query {
            made.span_new(begin, 1, (id + 1, id), QUERY, &[]);
            made.span(PerfEvent::SpanEnter, begin, 1, id + 1, QUERY);
        }
        if is_slow {
            measured(&mut made, end, if is_in_query { id + 1 } else { id }, off);
        }
        if is_in_query {
            made.span(PerfEvent::SpanExit, end, 1, id + 1, QUERY);
            made.span(PerfEvent::SpanClose, end, 1, id + 1, QUERY);
        }
        at = end + 500_000;
        made.span(PerfEvent::SpanExit, at, 1, id, REQUEST);
        made.span(PerfEvent::SpanClose, at, 1, id, REQUEST);
        at += 1_000;
    }
    why(&made.open(), &Question { span: Some("request".into()), slowest: 3, id: None }).unwrap()
}

#[test]
fn without_the_kernel_the_threads_own_times_say_why_and_what_they_cannot_know_is_named() {
    let sleep = 40_000_000;
    let off = Off { sleep, ..Off::default() };
    let told = |answer: Answer| {
        let unknown = "what threads waited for, who ran instead and who woke them (`eventring profile`)";
        assert_eq!(answer.missing, [unknown]);
        for span in &answer.spans {
            assert_eq!(span.source, Some(Source::Program));
            assert_eq!(span.shares.total_nanos(), span.nanos);
        }
        let span = &answer.spans[0];
        let cause = span.cause.as_ref().unwrap();
        let parts = [Part::Computing, Part::Runnable, Part::Blocked].map(|part| span.shares.nanos(part));
        (parts, format!("{}: {}", cause.kind.name(), cause.evidence))
    };
    let (parts, cause) = told(by_own_times(off, false));
    assert_eq!(parts, [1_000_000, 0, sleep]);
    assert_eq!(cause, "blocked: it was blocked for 40.0 ms, usually 0 ns");
    let (_, cause) = told(by_own_times(Off { faults: 7, ..off }, false));
    assert_eq!(cause, "io: it was blocked for 40.0 ms, usually 0 ns (7 pages came from a disk: 40.0 ms)");
    let (parts, cause) = told(by_own_times(Off { queue: sleep, ..Off::default() }, false));
    assert_eq!(parts, [1_000_000, sleep, 0]);
    let taken_away = "(1 time its processor was taken away: 40.0 ms)";
    assert_eq!(cause, format!("processor: it could have run and did not for 40.0 ms, usually 0 ns {taken_away}"));
    // Who waits for a processor after it was woken has waited for something before.
    let (_, cause) = told(by_own_times(Off { queue: 17_000_000, sleep: 23_000_000, ..off }, false));
    assert_eq!(cause, "blocked: it was blocked for 23.0 ms, usually 0 ns");
    let (_, cause) = told(by_own_times(off, true));
    assert_eq!(cause, "child: query took 40.0 ms of it, usually 1.00 µs; it was blocked for 40.0 ms");
    let (_, cause) = told(by_own_times(Off { merged: 3, ..off }, false));
    assert_eq!(cause, "blocked: it was blocked for about 40.0 ms, usually 0 ns");
}
