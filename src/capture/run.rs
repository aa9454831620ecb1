//! The loop of a capture, which copies events from rings to files. It decides when to read the rings and when to stop.

use super::end::EndReason;
use super::error::{CaptureError, CaptureErrorKind};
use super::format::PAYLOAD_BYTES_MAX;
use super::options::CaptureOptions;
use super::output::Output;
use super::parts::{Parts, PathParts};
use super::record::{GAP_BYTES, event_bytes};
use super::sources::{SourceRing, Sources};
use super::stats::RingStats;
use super::stop::Stop;
use super::summary::{CaptureProgress, CaptureSummary, NextRing};
use crate::clock::Clock;
use crate::reader::{Descriptor, LostPages, PayloadRead, Reader, RingItem};
use std::io::Write;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// The time between two ticks. At each tick, the capture checks the time limits and whether the writers live, and calls
/// the caller's `progress`.
const TICK: Duration = Duration::from_millis(100);
/// The largest number of records that are copied before the clock is read again.
const RECORDS_PER_LOOK: u32 = 1 << 10;
/// The number of payload bytes after which the clock is read again.
const PAYLOAD_BYTES_PER_LOOK: u64 = 64 << 20;
/// The pause between two reads of the rings while no event comes.
const IDLE_SLEEP: Duration = Duration::from_micros(500);
/// The time for which a capture waits after its end was decided. Events whose recording began before the end may still
/// come during this time.
const END_GRACE: Duration = Duration::from_millis(50);

/// Copies the events of the rings with these names or paths into a file, even if their programs are dead. All shards
/// of a perf recorder are taken, even those that it makes during the capture. If a shard was removed before it could
/// be opened, its events count as lost.
///
/// `progress` is called about ten times a second. By returning [`ControlFlow::Break`], it ends the capture in good
/// order: everything that was recorded before this end is still taken. If the options set no end, the capture lasts
/// until all writers have ended.
///
/// # Errors
/// A ring cannot be opened or is a perf ring of another schema, or a file cannot be written. The part of the capture
/// that was written before the error can be read.
pub fn capture(
    names: &[PathBuf],
    output: &Path,
    options: &CaptureOptions,
    progress: &mut dyn FnMut(&CaptureProgress) -> ControlFlow<()>,
) -> Result<CaptureSummary, CaptureError> {
    let mut readers = opened(names)?;
    capture_rings(&mut || next_of(&mut readers), output, options, progress)
}

/// Captures as [`capture`] does, but into a writer that the caller has opened. The output is not rotated.
///
/// # Errors
/// As [`capture`].
pub fn capture_to(
    names: &[PathBuf],
    out: impl Write + 'static,
    options: &CaptureOptions,
    progress: &mut dyn FnMut(&CaptureProgress) -> ControlFlow<()>,
) -> Result<CaptureSummary, CaptureError> {
    let mut readers = opened(names)?;
    capture_rings_to(&mut || next_of(&mut readers), out, options, progress)
}

fn opened(names: &[PathBuf]) -> Result<std::vec::IntoIter<Reader>, CaptureError> {
    let readers = names.iter().map(Reader::open).collect::<Result<Vec<_>, _>>();
    Ok(readers.map_err(CaptureError::ring)?.into_iter())
}

fn next_of(readers: &mut std::vec::IntoIter<Reader>) -> NextRing {
    readers.next().map_or(NextRing::NoMore, NextRing::Ring)
}

/// Captures as [`capture`] does, but from rings that the caller opens, before or during the capture. A ring that is
/// open is read to its end even if its file is removed.
///
/// At the start, `next_ring` is called until it returns [`NextRing::NotYet`] or [`NextRing::NoMore`]. Before that, it
/// must return at least one ring. During the capture, `next_ring` is called thousands of times a second, until it
/// returns [`NextRing::NoMore`]. So it should be quick. A ring that it returns during the capture is captured from the
/// ring's first event on, even with [`CaptureOptions::only_new`]. If such a ring cannot be captured, the error is among
/// the problems in the summary.
///
/// # Errors
/// As [`capture`]; or there is no ring at the start.
pub fn capture_rings(
    next_ring: &mut dyn FnMut() -> NextRing,
    output: &Path,
    options: &CaptureOptions,
    progress: &mut dyn FnMut(&CaptureProgress) -> ControlFlow<()>,
) -> Result<CaptureSummary, CaptureError> {
    if output.file_name().is_none() {
        return Err(CaptureError::new(
            CaptureErrorKind::BadOptions,
            "cannot write it: not the name of a file; name a file in it",
        )
        .at(output));
    }
    let parts = Parts::Path(PathParts {
        output: output.to_path_buf(),
        rotates: options.rotates(),
        keep: options.keep_files.filter(|_| options.rotates()),
        overwrite: options.overwrite,
        written: Default::default(),
        removed: 0,
    });
    Capture::begin(next_ring, parts, options)?.run(progress)
}

/// Captures as [`capture_rings`] does, but into a writer that the caller has opened. The output is not rotated.
///
/// # Errors
/// As [`capture_rings`].
pub fn capture_rings_to(
    next_ring: &mut dyn FnMut() -> NextRing,
    out: impl Write + 'static,
    options: &CaptureOptions,
    progress: &mut dyn FnMut(&CaptureProgress) -> ControlFlow<()>,
) -> Result<CaptureSummary, CaptureError> {
    let options = CaptureOptions { rotate_bytes: None, rotate_every: None, ..options.clone() };
    Capture::begin(next_ring, Parts::Writer(Some(Box::new(out))), &options)?.run(progress)
}

struct Capture<'o> {
    options: &'o CaptureOptions,
    /// `None` if no more rings will come.
    next_ring: Option<&'o mut dyn FnMut() -> NextRing>,
    sources: Sources,
    output: Output<'o>,
    started: Instant,
}

/// The result of the attempt to copy one event or gap.
enum Copied {
    Record {
        /// The payload's size, as the descriptor names it.
        payload_bytes: u64,
    },
    Nothing,
    /// An event that was recorded after the end of the capture.
    AfterTheEnd,
    /// The files have no room for the event or gap.
    Full,
}

impl<'o> Capture<'o> {
    fn begin(
        next_ring: &'o mut dyn FnMut() -> NextRing,
        parts: Parts,
        options: &'o CaptureOptions,
    ) -> Result<Self, CaptureError> {
        if !(1..=22).contains(&options.level) {
            let message = format!("the compression level is {}, expected 1 to 22; choose one of these", options.level);
            return Err(CaptureError::new(CaptureErrorKind::BadOptions, message));
        }
        let mut sources = Sources::new(options.only_new);
        let may_come_more = loop {
            match next_ring() {
                NextRing::Ring(reader) => sources.add_first(reader)?,
                NextRing::NotYet => break true,
                NextRing::NoMore => break false,
            }
        };
        if sources.rings.is_empty() {
            let message = "there is no ring to capture, expected one at least; name the rings";
            return Err(CaptureError::new(CaptureErrorKind::BadOptions, message));
        }
        sources.add_first_shards()?;
        let output = Output::begin(parts, options, &sources.rings)?;
        let next_ring = may_come_more.then_some(next_ring);
        Ok(Self { options, next_ring, sources, output, started: Instant::now() })
    }

    /// Adds the rings that `next_ring` has for now.
    fn take_new_rings(&mut self) {
        while let Some(next_ring) = &mut self.next_ring {
            match next_ring() {
                NextRing::Ring(reader) => self.sources.add_later(reader),
                NextRing::NotYet => return,
                NextRing::NoMore => self.next_ring = None,
            }
        }
    }

    fn run(
        mut self,
        progress: &mut dyn FnMut(&CaptureProgress) -> ControlFlow<()>,
    ) -> Result<CaptureSummary, CaptureError> {
        let lost_pages = |ring: &SourceRing| ring.reader.as_ref().and_then(Reader::lost_pages);
        let mut reason = self.copy(progress).map_err(|error| self.output.named(error))?;
        if reason == EndReason::WritersEnded
            && let Some(lost) = self.sources.rings.iter().find_map(lost_pages)
        {
            let is_truncated = lost == LostPages::Truncated;
            reason = if is_truncated { EndReason::Truncated } else { EndReason::Unreadable };
        }
        let elapsed = self.started.elapsed();
        let finished = self.output.finish_part(&mut self.sources.rings, &mut self.sources.recorders, reason);
        finished.map_err(|error| self.output.named(error))?;
        let _ = progress(&self.progress());
        let named = |ring: &SourceRing| lost_pages(ring).map(|lost| (ring.described.name.clone(), lost));
        let lost_pages: Vec<(String, LostPages)> = self.sources.rings.iter().filter_map(named).collect();
        let mut problems = self.sources.problems;
        problems.extend(lost_pages.iter().map(|(name, lost)| format!("{name}: {}", lost.advice())));
        let overlapping = self.sources.rings.iter().filter(|ring| ring.payloads.refused > 0);
        problems.extend(overlapping.map(|ring| {
            format!(
                "the ring {} is damaged: {} of its payloads share bytes with others or lie after its buffer, and are left out; their descriptors \
                 are kept",
                ring.described.name, ring.payloads.refused
            )
        }));
        let rings = self.sources.rings.iter().map(|ring| ring.described.name.clone());
        Ok(CaptureSummary {
            reason,
            elapsed,
            // The list ends before the first ring for whose description no file had room. Such rings were not captured.
            rings: rings.take(self.output.finished.rings.len()).collect(),
            stats: self.output.finished,
            bytes: self.output.finished_bytes.saturating_sub(self.output.removed_bytes),
            removed_files: self.output.removed_files,
            removed_bytes: self.output.removed_bytes,
            files: self.output.parts.into_files(),
            problems,
            lost_pages,
        })
    }

    /// Copies records until there is a reason to stop.
    fn copy(
        &mut self,
        progress: &mut dyn FnMut(&CaptureProgress) -> ControlFlow<()>,
    ) -> Result<EndReason, CaptureError> {
        let mut next_tick = Instant::now();
        let mut stop: Option<Stop> = None;
        loop {
            self.take_new_rings();
            let mut is_idle = false;
            let mut bytes = 0;
            for _ in 0..RECORDS_PER_LOOK {
                match self.copy_record(stop.as_ref().map(|stop| stop.epoch_nanos))? {
                    Copied::Record { payload_bytes } => {
                        bytes += payload_bytes;
                        if bytes > PAYLOAD_BYTES_PER_LOOK {
                            break;
                        }
                    }
                    Copied::Nothing => {
                        is_idle = true;
                        break;
                    }
                    Copied::AfterTheEnd => return Ok(stop.map_or(EndReason::Duration, |stop| stop.reason)),
                    Copied::Full => return Ok(EndReason::Size),
                }
            }
            let now = Instant::now();
            if now >= next_tick {
                next_tick = now + TICK;
                if is_idle {
                    self.sources.set.check_liveness();
                    // A writer may have recorded its last events after the rings were read and before this check found
                    // that the writer has ended. So the rings are read once more before the capture may end.
                    is_idle = false;
                }
                if !self.output.tick(now, &mut self.sources.rings, &mut self.sources.recorders)? {
                    return Ok(EndReason::Size);
                }
                let wants_end = progress(&self.progress()).is_break();
                let reason = self.reason_to_end(now, wants_end);
                stop = stop.or_else(|| reason.map(|reason| Stop::new(reason, now_epoch_nanos(), now + END_GRACE)));
                // Events whose recording began before the end may come until the deadline. So the capture does not end
                // before the deadline.
                if let Some(stop) = &mut stop
                    && stop.is_reached(&self.sources.rings)
                    && now >= stop.deadline
                {
                    return Ok(stop.reason);
                }
            }
            if is_idle {
                if self.next_ring.is_none() && self.sources.set.has_ended() {
                    return Ok(EndReason::WritersEnded);
                }
                if let Some(stop) = &stop
                    && now >= stop.deadline
                {
                    return Ok(stop.reason);
                }
                std::thread::sleep(IDLE_SLEEP);
            }
        }
    }

    fn reason_to_end(&self, now: Instant, wants_end: bool) -> Option<EndReason> {
        if wants_end {
            Some(EndReason::Interrupted)
        } else if self.options.duration.is_some_and(|duration| now.duration_since(self.started) >= duration) {
            Some(EndReason::Duration)
        } else {
            None
        }
    }

    fn copy_record(&mut self, end_epoch_nanos: Option<u64>) -> Result<Copied, CaptureError> {
        let item = self.sources.set.next();
        self.sources.take_new()?;
        let Sources { set, rings, recorders, .. } = &mut self.sources;
        if !self.output.describe(rings, recorders)? {
            return Ok(Copied::Full);
        }
        let payload_bytes = match item {
            None => return Ok(Copied::Nothing),
            Some(RingItem::Gap { ring, gap }) => {
                // The gap of a shard that could not be opened is written at the end of the file.
                if rings[ring].reader.is_some() {
                    if !self.output.make_room(2 * GAP_BYTES, rings, recorders)? {
                        return Ok(Copied::Full);
                    }
                    rings[ring].write_gap(&mut self.output.writer, ring as u32, gap);
                }
                0
            }
            Some(RingItem::Event { ring: index, event }) => {
                if end_epoch_nanos.is_some_and(|end| event.record_epoch_nanos > end) {
                    return Ok(Copied::AfterTheEnd);
                }
                let ring = &mut rings[index];
                let payload = ring.payloads.check(&event, set.payload(), ring.reader.as_ref());
                // Room is needed for the event and for a gap before it.
                if !self.output.make_room(event_bytes(payload) + GAP_BYTES, rings, recorders)? {
                    return Ok(Copied::Full);
                }
                let ring = &mut rings[index];
                let key = ring.key.event(event.record_epoch_nanos);
                self.output.writer.event(index as u32, key, &event, payload);
                count_event(&mut ring.stats, &event, payload);
                event.payload_size.into()
            }
        };
        if self.output.writer.is_block_full() {
            self.output.flush(rings, recorders)?;
        }
        Ok(Copied::Record { payload_bytes })
    }

    fn progress(&self) -> CaptureProgress {
        let all = |count: &dyn Fn(&RingStats) -> u64| {
            let now = self.sources.rings.iter().map(|ring| count(&ring.stats));
            now.chain(self.output.finished.rings.iter().map(count)).fold(0, u64::saturating_add)
        };
        let removed = self.sources.rings.iter().map(|ring| ring.stats.removed).fold(0, u64::saturating_add);
        CaptureProgress {
            elapsed: self.started.elapsed(),
            rings: self.sources.rings.len(),
            events: all(&|stats| stats.events).saturating_add(removed),
            lost: all(&RingStats::lost),
            bytes: self.output.bytes(),
            files: self.output.files(),
        }
    }
}

fn count_event(stats: &mut RingStats, descriptor: &Descriptor, payload: PayloadRead<'_>) {
    stats.events += 1;
    stats.last_seqno = descriptor.seqno;
    match payload {
        PayloadRead::Valid(bytes) if bytes.len() > PAYLOAD_BYTES_MAX => stats.omitted_payloads += 1,
        PayloadRead::Valid(_) => {}
        PayloadRead::Expired => stats.expired_payloads += 1,
        PayloadRead::Malformed => stats.malformed_payloads += 1,
    }
}

/// Returns the time of the clock that stamps events.
fn now_epoch_nanos() -> u64 {
    Clock::global().now_epoch_nanos()
}
