//! Tests that the phase of a task is tested once at each age that it reaches, at whatever times ticks come.

use crate::conditions::ConditionSet;
use crate::fixture::{START, StreamFixture};
use crate::observation::Observation;
use crate::options::LiveOptions;
use crate::state::LiveState;
use eventring::schema::perf::{CallSiteKind, PerfEvent, PerfExt, ValueType};
use eventring_tasks::TaskState;
use proptest::prelude::*;

const MILLI: u64 = 1_000_000;
const TASK: u32 = 1;
const WOKEN: u32 = 2;

/// Each condition, and what it means: the state, the age in milliseconds, and the name if it names one.
const CONDITIONS: [(&str, TaskState, u64, Option<&str>); 7] = [
    ("poll>=20ms", TaskState::Running, 20, None),
    ("poll>=1ms", TaskState::Running, 1, None),
    ("woken>=15ms task=orders", TaskState::Woken, 15, Some("orders")),
    ("woken>=70ms", TaskState::Woken, 70, None),
    ("idle>=30ms", TaskState::Idle, 30, None),
    ("task=mail idle>=250ms", TaskState::Idle, 250, Some("mail")),
    ("task=ord* (idle>=5ms or dur>1h)", TaskState::Idle, 5, Some("orders")),
];

type Fired = Vec<(usize, u64)>;

/// What happens: the time, its place, the event and its call site or a tick, and the task. Places keep the order of
/// events at the same time.
type Step = (u64, usize, Option<(PerfEvent, u32)>, u64);

fn stream(set: &ConditionSet) -> StreamFixture {
    let mut stream = StreamFixture::new(&set.options(LiveOptions::new().windows([])));
    stream.call_site_in(TASK, CallSiteKind::Span, (eventring_tasks::TARGET, "task"), "name");
    stream.call_site_in(WOKEN, CallSiteKind::Event, (eventring_tasks::TARGET, "woken"), "by");
    stream
}

fn set(conditions: &[&str]) -> ConditionSet {
    ConditionSet::new(conditions.iter().map(|text| text.parse().unwrap()).collect())
}

fn noting<'n>(set: &'n mut ConditionSet, fired: &'n mut Fired) -> impl FnMut(&Observation<'_>, LiveState<'_>) + 'n {
    |observation, state| {
        set.see(observation, state, &mut |index, _, occurrence| {
            fired.push((index, occurrence.span().unwrap().id.get()));
        });
    }
}

fn named(name: &str) -> Vec<u8> {
    let mut field = vec![0, ValueType::Str as u8, name.len() as u8, 0];
    field.extend(name.as_bytes());
    field
}

fn push(
    stream: &mut StreamFixture,
    nanos: u64,
    event: PerfEvent,
    (id, site): (u64, u32),
    payload: &[u8],
    see: &mut impl FnMut(&Observation<'_>, LiveState<'_>),
) {
    let field_count = u16::from(!payload.is_empty());
    let ext = PerfExt { thread_id: id as u32, field_count, ..PerfExt::of_span(id, site) };
    stream.push(nanos, event, ext, payload, see);
}

proptest! {
    #[test]
    fn each_phase_fires_once_at_each_age_that_it_reaches(
        lives in prop::collection::vec((0..200_u64, prop::collection::vec(0..120_u64, 1..12)), 1..5),
        ticks in prop::collection::btree_set(0..2000_u64, 0..25),
    ) {
        let texts: Vec<&str> = CONDITIONS.iter().map(|(text, ..)| *text).collect();
        let (mut set, mut fired, mut expected) = (set(&texts), Fired::new(), Fired::new());
        let mut stream = stream(&set);
        let mut all: Vec<Step> = Vec::new();
        let cycle = [
            (PerfEvent::SpanEnter, TASK, TaskState::Woken),
            (PerfEvent::SpanExit, TASK, TaskState::Running),
            (PerfEvent::Event, WOKEN, TaskState::Idle),
        ];
        let last = ticks.last().copied();
        for (id, (begin, phases)) in (1..).zip(&lives) {
            let name = if id % 2 == 0 { "mail" } else { "orders" };
            let mut at = *begin;
            all.push((at, 0, Some((PerfEvent::SpanNew, TASK)), id));
            let mut expect = |state: TaskState, lasted: u64| {
                for (index, (_, of, age, is_of)) in CONDITIONS.iter().enumerate() {
                    if *of == state && lasted >= *age && is_of.is_none_or(|is_of| is_of == name) {
                        expected.push((index, id));
                    }
                }
            };
            for (place, nanos) in phases.iter().enumerate() {
                let (event, site, ends) = cycle[place % 3];
                at += nanos;
                all.push((at, 1 + place, Some((event, site)), id));
                expect(ends, *nanos);
            }
            let open = cycle[phases.len() % 3].2;
            if let Some(lasted) = last.and_then(|last| last.checked_sub(at)) {
                expect(open, lasted);
            }
        }
        all.extend(ticks.iter().map(|tick| (*tick, usize::MAX, None, 0)));
        all.sort_by_key(|(at, place, ..)| (*at, *place));
        for (milli, _, event, id) in all {
            let nanos = START + milli * MILLI;
            let mut see = noting(&mut set, &mut fired);
            match event {
                Some((event, site)) => {
                    let name = named(if id % 2 == 0 { "mail" } else { "orders" });
                    let payload: &[u8] = if event == PerfEvent::SpanNew { &name } else { &[] };
                    push(&mut stream, nanos, event, (id, site), payload, &mut see);
                }
                None => stream.tick(nanos, &mut see),
            }
        }
        fired.sort_unstable();
        expected.sort_unstable();
        prop_assert_eq!(fired, expected);
    }
}

#[test]
fn after_a_loss_a_task_is_not_tested_at_ticks_until_something_is_said_of_it() {
    let (mut set, mut fired) = (set(&["idle>10ms", "poll>10ms"]), Fired::new());
    let mut stream = stream(&set);
    let at = |milli| START + milli * MILLI;
    let mut quiet = |stream: &mut StreamFixture, milli, event| {
        push(stream, at(milli), event, (1, TASK), &[], &mut noting(&mut set, &mut fired));
    };
    quiet(&mut stream, 0, PerfEvent::SpanNew);
    quiet(&mut stream, 1, PerfEvent::SpanEnter);
    quiet(&mut stream, 2, PerfEvent::SpanExit);
    stream.lose();
    stream.tick(at(100), &mut noting(&mut set, &mut fired));
    assert_eq!(fired, []);
    push(&mut stream, at(110), PerfEvent::SpanEnter, (1, TASK), &[], &mut noting(&mut set, &mut fired));
    stream.tick(at(115), &mut noting(&mut set, &mut fired));
    // Nobody knows whether it was idle all the time.
    assert_eq!(fired, []);
    stream.tick(at(125), &mut noting(&mut set, &mut fired));
    stream.tick(at(225), &mut noting(&mut set, &mut fired));
    assert_eq!(fired, [(1, 1)]);
}

#[test]
fn the_text_says_what_the_task_does_or_did() {
    let mut set = set(&["poll>10ms", "woken>10ms", "idle>10ms"]);
    let mut stream = stream(&set);
    let mut said: Vec<String> = Vec::new();
    let mut see = |observation: &Observation<'_>, state: LiveState<'_>| {
        set.see(observation, state, &mut |_, _, occurrence| said.push(format!("{}: {occurrence}", occurrence.name())));
    };
    let at = |milli| START + milli * MILLI;
    push(&mut stream, at(0), PerfEvent::SpanNew, (1, TASK), &named("orders"), &mut see);
    for (milli, event) in [(20, PerfEvent::SpanEnter), (50, PerfEvent::SpanExit)] {
        push(&mut stream, at(milli), event, (1, TASK), &[], &mut see);
    }
    stream.tick(at(70), &mut see);
    push(&mut stream, at(80), PerfEvent::Event, (1, WOKEN), &[], &mut see);
    stream.tick(at(100), &mut see);
    let expected = [
        "orders: task `orders` was woken and not polled for 20.0 ms",
        "orders: task `orders` was polled for 30.0 ms",
        "orders: task `orders` is idle for 20.0 ms",
        "orders: task `orders` was woken and is not polled for 20.0 ms",
    ];
    assert_eq!(said, expected);
}
