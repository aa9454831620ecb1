//! The choice of the ring that has the next event in the order of time. `docs/ORDERING.md`, section 15, proves that
//! this choice is right.

use super::item::RingItem;
use super::ring::{Looked, RingSilence, SetRing};
use crate::clock::Clock;

/// Returns the next item of all rings, or `None` if no item can be handed out yet. `now` is a time of
/// [`Clock::global`] that the caller has read before. An event with a stamp later than `latest` is held back: a shard
/// that was not found yet may have an earlier event.
#[inline]
pub(super) fn next(rings: &mut [SetRing], slack_nanos: u64, now: u64, latest: u64) -> Option<RingItem> {
    // `due` is the stamp of the oldest known event plus the slack. If the reader saw at the time `due` or later that a
    // ring had no next event, the ring can bring no older event. So the loop does not read that ring again.
    let due = oldest(rings).map(|(_, stamp)| stamp.saturating_add(slack_nanos));
    let mut all_shown = true;
    let mut first: Option<(usize, u64)> = None;
    for (ring, state) in rings.iter_mut().enumerate() {
        let Some(input) = state.input_mut() else { continue };
        if input.head.is_none() && due.is_none_or(|due| due > input.silent_until_nanos) {
            match input.look() {
                Some(Looked::Gap(gap)) => return Some(RingItem::Gap { ring, gap }),
                Some(Looked::Event) => {}
                None if input.has_ended() => input.silent_until_nanos = u64::MAX,
                None => all_shown = false,
            }
        }
        let stamp = input.head.as_ref().map(|head| head.record_epoch_nanos);
        if let Some(stamp) = stamp.filter(|stamp| first.is_none_or(|(_, oldest)| *stamp < oldest)) {
            first = Some((ring, stamp));
        }
    }
    let (first, stamp) = first?;
    let due = stamp.saturating_add(slack_nanos);
    // An event that is not due yet is held back if another ring may still bring an older one. But an event with a stamp
    // in the future is not held back: the stamp comes from a damaged ring or from another machine's clock. `now` may be
    // long past, because this thread may have been preempted. So the clock is read again before a stamp counts as being
    // in the future.
    let is_later = |now: u64| stamp > now.saturating_add(slack_nanos);
    let is_foreign = is_later(now) && is_later(Clock::global().now_epoch_nanos());
    if !is_foreign && (stamp > latest || due > now && !all_shown) {
        return None;
    }
    if all_shown {
        return take(rings, first);
    }
    // The oldest event is due, but some rings have not shown a next event. The oldest event may be handed out if these
    // rings are silent, that is, if they can bring no older event. An empty slot does not prove this: the slot may
    // belong to a hole, and events may follow the hole. So the headers of these rings are loaded now, once. They were
    // not loaded before, because writers store to the headers' cache lines for each event.
    let mut all_silent = true;
    for (ring, state) in rings.iter_mut().enumerate() {
        let Some(input) = state.input_mut() else { continue };
        if input.head.is_some() || due <= input.silent_until_nanos {
            continue;
        }
        match input.probe() {
            Ok(Looked::Gap(gap)) => return Some(RingItem::Gap { ring, gap }),
            Ok(Looked::Event) => {}
            Err(RingSilence::Sure) => input.silent_until_nanos = now,
            Err(RingSilence::Uncommitted) => all_silent = false,
        }
    }
    // The loop may have found an older event in another ring.
    match oldest(rings) {
        Some((ring, _)) if all_silent => take(rings, ring),
        _ => None,
    }
}

/// Returns the ring whose next event is the oldest: the ring's index and the event's stamp. Returns `None` if no ring
/// has shown its next event.
#[inline]
fn oldest(rings: &[SetRing]) -> Option<(usize, u64)> {
    let stamps = rings.iter().enumerate();
    let stamps = stamps.filter_map(|(index, ring)| Some((index, ring.head_stamp()?)));
    stamps.min_by_key(|(_, stamp)| *stamp)
}

#[inline]
fn take(rings: &mut [SetRing], ring: usize) -> Option<RingItem> {
    let event = rings.get_mut(ring)?.input_mut()?.take()?;
    Some(RingItem::Event { ring, event })
}

#[cfg(test)]
mod tests {
    use super::super::super::{Reader, Seek};
    use super::*;
    use crate::recorder::{ContentDescription, Recorder};
    use std::time::Duration;

    fn ring() -> (Recorder, SetRing) {
        let builder = Recorder::builder(ContentDescription::new(300, "THINGS")).anonymous().compact(true);
        let recorder = builder.shifts(15, 21).prefault(false).build().unwrap();
        let reader = Reader::options().open_fd(recorder.as_fd()).unwrap();
        (recorder, SetRing::read(reader, None, 0, Seek::Newest))
    }

    #[test]
    fn nothing_later_than_the_search_for_rings_is_given_because_the_next_found_ring_may_bring_something_earlier() {
        let slack = Duration::from_millis(2);
        let (first, ring_of_first) = ring();
        let (found_late, ring_of_found_late) = ring();
        let mut rings = vec![ring_of_first];
        let now = Clock::global().now_epoch_nanos();
        // The pause stands for a thread that is preempted after the search for shards. The event of `first` must be
        // held back, however long the pause is.
        std::thread::sleep(2 * slack);
        found_late.record(2, [0; 4], b"");
        first.record(3, [0; 4], b"");
        let next = |rings: &mut Vec<SetRing>, now| next(rings, slack.as_nanos() as u64, now, now);
        assert_eq!(next(&mut rings, now), None);
        rings.push(ring_of_found_late);
        std::thread::sleep(2 * slack);
        let now = Clock::global().now_epoch_nanos();
        assert!(matches!(next(&mut rings, now), Some(RingItem::Event { ring: 1, .. })));
        assert!(matches!(next(&mut rings, now), Some(RingItem::Event { ring: 0, .. })));
        assert_eq!(next(&mut rings, now), None);
    }
}
