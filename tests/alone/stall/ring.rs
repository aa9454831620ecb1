//! eventring under stall injection.

use super::seal::{self, Count, Verdict, WITH_SEQNO, WITHOUT_SEQNO};
use super::{DESCRIPTOR_SHIFT, PAYLOAD_SHIFT, Subject};
use eventring::reader::{Cursor, Next, PayloadRead, Reader, Seek};
use eventring::recorder::{ContentDescription, Recorder};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// The time that a reader waits for a seqno after the last writer has ended. After this time the seqno counts as
/// stuck.
const TIMEOUT: Duration = Duration::from_secs(5);

/// Records a sealed event in one of three ways, which `count` chooses: in place, with the seqno in the seal; gathered
/// from two slices; or from one slice.
pub fn record(recorder: &Recorder, count: Count, words: [u64; 3], payload: &[u8]) -> u64 {
    let [a, b, c] = words;
    let ext = || [a, b, c, seal::seal(0, WITHOUT_SEQNO, payload.len(), words)];
    match count % 4 {
        0 => {
            let mut reservation = recorder.reserve(WITH_SEQNO, [a, b, c, 0], payload.len() as u64).expect("enabled");
            reservation.set_content_ext(3, seal::seal(reservation.seqno(), WITH_SEQNO, payload.len(), words));
            reservation.append(payload);
            reservation.commit()
        }
        1 => {
            let (start, end) = payload.split_at(payload.len() / 3);
            recorder.recordv(WITHOUT_SEQNO, ext(), &[start, end])
        }
        _ => recorder.record(WITHOUT_SEQNO, ext(), payload),
    }
}

/// A compact ring of eventring in anonymous memory.
pub struct EventRing(Recorder);

impl EventRing {
    pub fn new() -> Self {
        let description = ContentDescription::new(300, "STALLS");
        let builder = Recorder::builder(description).anonymous().compact(true);
        Self(builder.shifts(DESCRIPTOR_SHIFT, PAYLOAD_SHIFT).build().unwrap())
    }

    fn cursor_at_start(&self) -> Cursor {
        let mut cursor = Reader::options().open_fd(self.0.as_fd()).unwrap().cursor();
        cursor.seek(Seek::Seqno(1));
        cursor
    }
}

impl Subject for EventRing {
    fn record(&self, count: Count, words: [u64; 3], payload: &[u8]) -> u64 {
        record(&self.0, count, words, payload)
    }

    fn read(&self, done: &AtomicBool, verdict: &mut Verdict) {
        let mut cursor = self.cursor_at_start();
        let mut buffer = Vec::new();
        let mut done_since = None;
        loop {
            let was_done = done.load(Ordering::Acquire);
            if was_done {
                done_since.get_or_insert_with(Instant::now);
            }
            match cursor.next() {
                Next::Event(event) => judge(&cursor, &event, &mut buffer, verdict),
                Next::Gap(gap) => verdict.lost += gap.count,
                // All writers have ended. A cursor returns `NotReady` at the end, but also for a moment at a hole. Only
                // a `lag` of 0 shows that no seqno is left.
                Next::NotReady if was_done && cursor.lag() == 0 => return,
                // The last writer has ended more than TIMEOUT ago, so no writer will commit this seqno. The cursor
                // does not report it as a hole either. A real reader would wait here for ever.
                Next::NotReady if done_since.is_some_and(|since| since.elapsed() > TIMEOUT) => {
                    verdict.stuck += 1;
                    cursor.seek(Seek::Seqno(cursor.next_seqno() + 1));
                }
                Next::NotReady => std::thread::sleep(Duration::from_micros(100)),
            }
        }
    }

    fn read_post_mortem(&self, verdict: &mut Verdict, seen: &mut dyn FnMut(u64)) {
        let mut cursor = self.cursor_at_start();
        cursor.seek(Seek::Seqno(self.last_seqno().saturating_sub(1 << DESCRIPTOR_SHIFT) + 1));
        let mut buffer = Vec::new();
        loop {
            match cursor.next() {
                Next::Event(event) => {
                    seen(event.seqno);
                    judge(&cursor, &event, &mut buffer, verdict);
                }
                Next::Gap(gap) => verdict.lost += gap.count,
                Next::NotReady if cursor.next_seqno() > self.last_seqno() => return,
                Next::NotReady => {
                    verdict.stuck += 1;
                    cursor.seek(Seek::Seqno(cursor.next_seqno() + 1));
                }
            }
        }
    }

    fn last_seqno(&self) -> u64 {
        self.0.stats().last_seqno
    }

    fn skipped(&self) -> u64 {
        self.0.stats().refused_claims + self.0.stats().overrun_claims
    }
}

/// Checks an event that `cursor` has returned.
pub fn judge(cursor: &Cursor, event: &eventring::reader::Descriptor, buffer: &mut Vec<u8>, verdict: &mut Verdict) {
    let payload = match cursor.payload(event, buffer) {
        PayloadRead::Valid(payload) => Some(payload),
        PayloadRead::Expired => None,
        // The tested recorder must never write a descriptor that a reader calls malformed. If it does, the empty
        // slice stands for the payload. Its length differs from the descriptor's size, so the verdict counts the
        // event as wrong.
        PayloadRead::Malformed => Some(&[][..]),
    };
    verdict.event(event.seqno, event.event_type, event.payload_size as usize, event.content_ext, payload);
}
