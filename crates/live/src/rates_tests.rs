//! Tests of rates. A rate is a count divided by the length of the time in which no event is missing.

use super::fixture::{START, StreamFixture};
use super::observation::Observation;
use super::options::LiveOptions;
use super::state::LiveState;
use crate::core::series::SeriesKind;
use eventring::schema::perf::{PerfEvent, PerfExt};
use std::time::Duration;

const MILLI: u64 = 1_000_000;
const WINDOWS: [Duration; 2] = [Duration::from_secs(1), Duration::from_secs(60)];

/// Records spans for a time, with this pause between them. Each span is four events: new, enter, exit, close.
fn record(stream: &mut StreamFixture, millis: std::ops::Range<u64>, pause_millis: u64) {
    for milli in millis.step_by(pause_millis as usize) {
        let nanos = START + milli * MILLI;
        let ext = PerfExt::of_span(milli + 1, 1);
        for event in [PerfEvent::SpanNew, PerfEvent::SpanEnter, PerfEvent::SpanExit, PerfEvent::SpanClose] {
            stream.quiet(nanos, event, ext, &[]);
        }
    }
}

/// Returns the time that a window covers, and the events and spans a second in it.
fn rates(stream: &StreamFixture, window: usize) -> (Duration, [f64; 2]) {
    let state = stream.state();
    let spans = state.series_of(SeriesKind::Spans, "query", None).unwrap().per_second(window);
    (state.covered(window), [state.events_per_second(window), spans])
}

fn is_near(found: [f64; 2], expected: [f64; 2]) -> bool {
    found.iter().zip(expected).all(|(found, expected)| (found / expected - 1.0).abs() < 0.05)
}

#[test]
fn a_ring_that_holds_less_than_another_does_not_make_its_rates_too_low() {
    let ignore = &mut |_: &Observation<'_>, _: LiveState<'_>| ();
    for is_overwritten in [true, false] {
        let mut stream = StreamFixture::new(&LiveOptions::new().windows(WINDOWS));
        stream.call_site(1, "query");
        // At first there are only the events of a ring that holds a long past. A busy ring has lost its own.
        record(&mut stream, 0..20_000, 1000);
        if is_overwritten {
            stream.lose_first();
        }
        record(&mut stream, 20_000..24_000, 10);
        stream.tick(START + 24_000 * MILLI, ignore);
        let (covered, found) = rates(&stream, 1);
        let (expected, per_second) = match is_overwritten {
            true => (Duration::from_secs(4), [400.0, 100.0]),
            // The control: all that happened is known.
            false => (Duration::from_secs(24), [420.0 * 4.0 / 24.0, 420.0 / 24.0]),
        };
        assert!(covered.abs_diff(expected) < Duration::from_millis(10), "{covered:?}");
        assert!(is_near(found, per_second), "{found:?}, expected {per_second:?}");
        let (covered, found) = rates(&stream, 0);
        assert!(
            (1000..=1210).contains(&covered.as_millis()) && is_near(found, [400.0, 100.0]),
            "{covered:?}: {found:?}"
        );
        assert!(stream.state().stats_of(WINDOWS[1], |_| true).is_none());
    }
}

#[test]
fn the_events_of_the_last_second_are_counted_whether_they_came_at_once_or_not() {
    let ignore = &mut |_: &Observation<'_>, _: LiveState<'_>| ();
    let mut stream = StreamFixture::new(&LiveOptions::new().windows(WINDOWS));
    stream.call_site(1, "query");
    // The history of a dead program is read without a tick in between. Its end was busier than its beginning.
    record(&mut stream, 0..10_000, 1000);
    record(&mut stream, 10_000..12_000, 2);
    let (_, found) = rates(&stream, 0);
    assert!(is_near([found[0], 500.0], [2000.0, 500.0]), "{found:?}");
    // Later, nothing happens.
    stream.tick(START + 12_010 * MILLI, ignore);
    stream.tick(START + 20_000 * MILLI, ignore);
    assert_eq!(rates(&stream, 0).1, [0.0, 0.0]);
}

#[test]
fn self_times_are_known_unless_they_are_left_out_and_all_else_stays() {
    let options = LiveOptions::new().windows(WINDOWS);
    let found = [options.clone(), options.without_self_times()].map(|options| {
        let mut stream = StreamFixture::new(&options);
        stream.call_site(1, "query");
        let mut closed = Vec::new();
        let mut see = |observation: &Observation<'_>, _: LiveState<'_>| {
            if let Observation::SpanClosed(span) = observation {
                closed.push((span.wall_nanos(), span.self_nanos()));
            }
        };
        let (outer, inner) = (PerfExt::of_span(1, 1), PerfExt::of_span(2, 1));
        stream.push(START, PerfEvent::SpanNew, outer, &[], &mut see);
        stream.push(START + 10, PerfEvent::SpanNew, PerfExt { related: 1, ..inner }, &[], &mut see);
        stream.push(START + 40, PerfEvent::SpanClose, inner, &[], &mut see);
        stream.push(START + 100, PerfEvent::SpanClose, outer, &[], &mut see);
        stream.end(&mut see);
        closed
    });
    assert_eq!(found[0], [(30, Some(30)), (100, Some(70))]);
    assert_eq!(found[1], [(30, None), (100, None)]);
}
