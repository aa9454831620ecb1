//! Tests of captures that contain looks (copies of tables of the present) with arbitrary content.

use crate::fixtures::CaptureFixture;
use crate::recording::{CaptureRecording, OverSpan, ReplayConsumer, ReplayNeeds, ReplayState, replay_capture};
use eventring::schema::perf::PerfEvent;
use proptest::prelude::*;
use std::io;

/// The spans that are over, with their begins.
#[derive(Default)]
struct Spans(Vec<(u64, Option<u64>, bool)>);

impl ReplayConsumer for Spans {
    fn needs(&self) -> ReplayNeeds {
        ReplayNeeds { fields: true, self_times: true, remaining: true, presents: true }
    }

    fn span(&mut self, _: usize, over: &OverSpan<'_>, _: ReplayState<'_>) -> io::Result<()> {
        let begun = over.span.created.as_ref().map(|created| created.epoch_nanos);
        self.0.push((over.span.id.get(), begun, over.span.is_end_lost));
        Ok(())
    }
}

/// Returns the image of open spans: id, begin, and seqno of the begin.
fn image(spans: &[(u64, u64, u64)]) -> Vec<u8> {
    let numbers = [0, 0, 0, 0, spans.len() as u64, 0, 0, 0, 0];
    let cells = spans.iter().flat_map(|(id, begun, seqno)| [id | 1 << 63, 0, *begun, 0, 9, *seqno, 0, 0]);
    numbers.into_iter().chain(cells).flat_map(u64::to_le_bytes).collect()
}

fn spans_of(made: CaptureFixture) -> Vec<(u64, Option<u64>, bool)> {
    let capture = made.open();
    let mut spans = Spans::default();
    replay_capture(&CaptureRecording::new(&capture).unwrap(), &mut spans).unwrap();
    spans.0.sort_unstable();
    spans.0
}

#[test]
fn a_look_gives_the_begins_that_the_capture_has_not_and_says_that_nothing_lost_before_has_ended_a_span() {
    let seen = |looks: &[u64]| {
        let mut made = CaptureFixture::new();
        for at in looks {
            made.look(0, *at, &image(&[(1, 500, 2), (2, 600, 3), (4, 1500, 12)]));
        }
        made.gap(0, 10, eventring::reader::GapCause::OverwrittenBefore);
        made.span(PerfEvent::SpanClose, 1400, 1, 2, 9);
        made.span_new(1500, 1, (4, 0), 9, &[]);
        made.gap(0, 3, eventring::reader::GapCause::Overwritten);
        made.span(PerfEvent::SpanEnter, 3000, 1, 5, 9);
        spans_of(made)
    };
    // The span 2 has closed; of 5, nobody knows the begin.
    let spans = |first, second, is_lost| vec![(1, first, is_lost), (2, second, false), (4, Some(1500), is_lost)];
    let known = |first, second, is_lost| [spans(first, second, is_lost), vec![(5, None, false)]].concat();
    assert_eq!(seen(&[]), known(None, None, true)[1..]);
    // What was lost after the look may have ended them, until the next one.
    assert_eq!(seen(&[1450]), known(Some(500), Some(600), true));
    assert_eq!(seen(&[1450, 3000]), known(Some(500), Some(600), false));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    #[test]
    fn any_words_of_a_look_are_an_answer(
        counts in prop::collection::vec(0_u64..3, 9),
        small in prop::collection::vec(0_u64..4, 0..90),
        high in prop::collection::vec(any::<u64>(), 1..9),
        at in 0_u64..3000,
        ring in 0_u32..4,
    ) {
        // Bits that cells have are set more often than in random words.
        let words = small.iter().zip(high.iter().cycle()).map(|(small, high)| small | high & 0x8000_8001_0000_0000);
        let mut image: Vec<u8> = counts.into_iter().chain(words).flat_map(u64::to_le_bytes).collect();
        let whole = |image: &[u8]| eventring::now::Present::of_image(image).is_some();
        while !whole(&image) && image.len() > 72 {
            image.truncate(image.len() - 8);
        }
        let mut made = CaptureFixture::sharded();
        made.look(ring, at, &image);
        made.span_new(1000, 1, (1, 0), 9, &[]);
        made.span(PerfEvent::SpanEnter, 1200, 1, 2, 9);
        made.span(PerfEvent::SpanClose, 1300, 1, 1, 9);
        spans_of(made);
    }
}
