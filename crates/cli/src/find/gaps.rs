//! The losses that could hide a hit.

use crate::text::format::{TimeFormat, events};
use eventring_capture::{CaptureFile, RingLoss};
use serde_json::{Value, json};

/// The losses of all files.
#[derive(Default)]
pub(super) struct Gaps(Vec<Gap>);

/// Losses of a ring with one cause, between two times.
struct Gap {
    file: String,
    /// The name of the ring; `None` for the missing end of a file, and for a whole file.
    ring: Option<String>,
    cause: &'static str,
    count: Option<u64>,
    from_nanos: u64,
    to_nanos: u64,
}

impl Gaps {
    /// Adds the losses of a file. Those of a ring that touch each other become one.
    pub(super) fn add(&mut self, file: &str, capture: &CaptureFile, mut losses: Vec<RingLoss>) {
        losses.sort_unstable_by_key(|loss| (loss.ring, loss.cause, loss.from_nanos));
        let mut joined: Vec<RingLoss> = Vec::new();
        for loss in losses {
            match joined.last_mut() {
                Some(last)
                    if (last.ring, last.cause) == (loss.ring, loss.cause) && loss.from_nanos <= last.to_nanos =>
                {
                    last.count = last.count.saturating_add(loss.count);
                    last.to_nanos = last.to_nanos.max(loss.to_nanos);
                }
                _ => joined.push(loss),
            }
        }
        self.0.extend(joined.into_iter().map(|loss| Gap {
            file: file.to_owned(),
            ring: capture.rings().get(loss.ring as usize).map(|ring| ring.name.clone()),
            cause: loss.cause,
            count: Some(loss.count),
            from_nanos: loss.from_nanos,
            to_nanos: loss.to_nanos,
        }));
        if capture.is_truncated() {
            let from_nanos = capture.last_nanos().unwrap_or(0);
            let (file, cause) = (file.to_owned(), "truncated");
            self.0.push(Gap { file, ring: None, cause, count: None, from_nanos, to_nanos: u64::MAX });
        }
    }

    /// Adds a file that could not be read.
    pub(super) fn add_unreadable(&mut self, file: &str) {
        let (file, cause) = (file.to_owned(), "unreadable");
        self.0.push(Gap { file, ring: None, cause, count: None, from_nanos: 0, to_nanos: u64::MAX });
    }

    pub(super) fn to_json(&self) -> Vec<Value> {
        let of_gap = |gap: &Gap| {
            json!({
                "file": gap.file, "ring": gap.ring, "cause": gap.cause, "events": gap.count,
                "from_ns": gap.known_from(), "to_ns": gap.known_to(),
            })
        };
        self.0.iter().map(of_gap).collect()
    }

    /// Returns a line for each gap.
    pub(super) fn in_words(&self, clock: &TimeFormat) -> Vec<String> {
        let time =
            |nanos: Option<u64>, unknown: &str| nanos.map_or_else(|| unknown.to_owned(), |nanos| clock.time(nanos));
        let line = |gap: &Gap| {
            let what = match (gap.count, gap.cause) {
                (None, "unreadable") => "all events".to_owned(),
                (None, _) => "what follows its end".to_owned(),
                (Some(count), "payload") => format!("the payloads of {}", events(count)),
                (Some(count), _) => events(count),
            };
            let ring = gap.ring.as_ref().map_or_else(String::new, |ring| format!(" of {ring}"));
            let (from, to) = (time(gap.known_from(), "the beginning"), time(gap.known_to(), "the end"));
            let cause = gap.cause.replace('_', " ");
            format!("{}: {what}{ring} ({cause}), from {from} to {to}", gap.file)
        };
        self.0.iter().map(line).collect()
    }
}

impl Gap {
    fn known_from(&self) -> Option<u64> {
        Some(self.from_nanos).filter(|nanos| *nanos > 0)
    }

    fn known_to(&self) -> Option<u64> {
        Some(self.to_nanos).filter(|nanos| *nanos < u64::MAX)
    }
}
