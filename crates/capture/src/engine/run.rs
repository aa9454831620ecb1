//! The thread that called [`capture`](crate::capture()). It writes the encoded blocks, asks the caller for rings, shows
//! the progress, and decides when the capture ends.

use crate::engine::copy::CopyThread;
use crate::engine::encoding::{self, Encoded};
use crate::engine::options::CaptureOptions;
use crate::engine::output::Output;
use crate::engine::sink::CaptureSink;
use crate::engine::slots::{BlockSlot, CopyResult, Message, Request};
use crate::engine::sources::{DiscoveredRings, SourceRing, Sources};
use crate::engine::stop::Stop;
use crate::engine::summary::{CaptureProgress, CaptureSummary, NextRing};
use crate::error::{CaptureError, CaptureErrorKind};
use crate::format::end::EndReason;
use crate::format::stats::RingStats;
use eventring::reader::{GapCause, LostPages, Reader};
use eventring::recorder::Clock;
use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::sync::Mutex;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::time::{Duration, Instant};

/// The time between two ticks. At each tick, the capture checks the time limits, and calls the caller's `progress`.
const TICK: Duration = Duration::from_millis(100);
/// The pause between two questions for another ring.
const RING_PAUSE: Duration = Duration::from_micros(500);
/// The time for which a capture waits after its stop. Events whose recording began before it may still
/// come during this time.
const STOP_GRACE: Duration = Duration::from_millis(50);
/// The number of slots for each encoding thread, and the number of further slots: one that is filled, and some that
/// wait to be encoded or written.
const SLOTS_PER_ENCODER: usize = 1;
const MORE_SLOTS: usize = 4;

/// Copies the events of rings into the files of `sink`, as [`capture_rings`](crate::capture_rings) does.
pub(crate) fn run(
    next_ring: &mut dyn FnMut() -> NextRing,
    sink: &mut dyn CaptureSink,
    options: &CaptureOptions,
    progress: &mut dyn FnMut(&CaptureProgress) -> ControlFlow<()>,
) -> Result<CaptureSummary, CaptureError> {
    let (capture, sources) = Capture::begin(next_ring, sink, options)?;
    capture.run(sources, progress)
}

/// The writing end of a capture.
struct Capture<'o> {
    options: &'o CaptureOptions,
    /// `None` if no more rings will come.
    next_ring: Option<&'o mut dyn FnMut() -> NextRing>,
    output: Output<'o>,
    problems: Vec<String>,
    refused_payloads: Vec<u64>,
    started: Instant,
}

/// The channels of the writing thread.
struct Channels {
    requests: Sender<Request>,
    free: Sender<Box<BlockSlot>>,
    encoded: Receiver<Encoded>,
}

impl<'o> Capture<'o> {
    fn begin(
        next_ring: &'o mut dyn FnMut() -> NextRing,
        sink: &'o mut dyn CaptureSink,
        options: &'o CaptureOptions,
    ) -> Result<(Self, Sources), CaptureError> {
        if !(0..=22).contains(&options.level) {
            let message = format!("the compression level is {}, expected 0 to 22; choose one of these", options.level);
            return Err(CaptureError::new(CaptureErrorKind::BadOptions, message));
        }
        let mut sources = Sources::new(options.first_place(), options.start.clone(), options.filter.clone());
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
        sources.find_shards()?;
        let DiscoveredRings { rings, recorders, problems } = std::mem::take(&mut sources.found);
        let output = Output::begin(sink, options, rings, recorders)?;
        output.sink.begun(&output.rings);
        let next_ring = may_come_more.then_some(next_ring);
        let started = Instant::now();
        Ok((Self { options, next_ring, output, problems, refused_payloads: Vec::new(), started }, sources))
    }

    fn run(
        mut self,
        sources: Sources,
        progress: &mut dyn FnMut(&CaptureProgress) -> ControlFlow<()>,
    ) -> Result<CaptureSummary, CaptureError> {
        let reason = self.copy(sources, progress).map_err(|error| self.output.failed(error))?;
        self.finish(reason, progress)
    }

    /// Runs the other threads, and writes what they send.
    fn copy(
        &mut self,
        sources: Sources,
        progress: &mut dyn FnMut(&CaptureProgress) -> ControlFlow<()>,
    ) -> Result<EndReason, CaptureError> {
        let level = self.options.level;
        let (requests, for_copier) = mpsc::channel();
        let (free, free_slots) = mpsc::channel();
        let (copied, for_encoders) = mpsc::channel();
        let (encoded_out, encoded) = mpsc::channel();
        let encoders = encoding::threads();
        for _ in 0..SLOTS_PER_ENCODER * encoders + MORE_SLOTS {
            let _ = free.send(Box::<BlockSlot>::default());
        }
        // A capture of what was recorded until now is stopped before the first ring is copied. Otherwise the rings
        // that are copied later would be stopped later.
        let is_of_now = self.options.duration == Some(Duration::ZERO);
        if is_of_now {
            let _ = requests.send(Request::Stop(stop_now(EndReason::Duration)));
        }
        let copier = CopyThread::new(sources, for_copier, free_slots, copied, self.options);
        let for_encoders = Mutex::new(for_encoders);
        std::thread::scope(|scope| {
            let spawn = |name: &str| std::thread::Builder::new().name(name.into());
            let no_thread = |error| CaptureError::io("start a thread", error);
            // When this function returns, its ends of the channels are dropped, and the threads end.
            let channels = Channels { requests, free, encoded };
            for _ in 0..encoders {
                let (messages, out) = (&for_encoders, encoded_out.clone());
                spawn("capture-encode")
                    .spawn_scoped(scope, move || encoding::run(messages, &out, level))
                    .map_err(no_thread)?;
            }
            drop(encoded_out);
            spawn("capture-copy").spawn_scoped(scope, move || copier.run()).map_err(no_thread)?;
            self.write_all(channels, is_of_now, progress)
        })
    }

    /// Writes what comes until the capture ends. With `is_stopping`, the stop is requested already.
    fn write_all(
        &mut self,
        channels: Channels,
        mut is_stopping: bool,
        progress: &mut dyn FnMut(&CaptureProgress) -> ControlFlow<()>,
    ) -> Result<EndReason, CaptureError> {
        let mut next_tick = Instant::now();
        let mut waiting: BTreeMap<u64, Message> = BTreeMap::new();
        let mut next_number = 0;
        // One that ends now has the tables at its end.
        if !is_stopping {
            self.output.look_at_begin()?;
        }
        self.ask_for_rings(&channels.requests);
        loop {
            let now = Instant::now();
            if now >= next_tick {
                next_tick = now + TICK.min(self.options.wait_max);
                if !self.output.tick(now)? {
                    return Ok(EndReason::Size);
                }
                let wants_end = progress(&self.progress()).is_break();
                if let Some(reason) = self.reason_to_end(now, wants_end).filter(|_| !is_stopping) {
                    is_stopping = true;
                    let _ = channels.requests.send(Request::Stop(stop_now(reason)));
                }
            }
            let pause = if self.next_ring.is_some() { RING_PAUSE } else { next_tick.saturating_duration_since(now) };
            match channels.encoded.recv_timeout(pause) {
                Ok((number, message)) => {
                    waiting.insert(number, message?);
                }
                Err(RecvTimeoutError::Timeout) => self.ask_for_rings(&channels.requests),
                Err(RecvTimeoutError::Disconnected) => {
                    return Err(CaptureError::new(CaptureErrorKind::Io, "a thread of the capture has ended early"));
                }
            }
            while let Some(message) = waiting.remove(&next_number) {
                next_number += 1;
                match message {
                    Message::Found(found) => {
                        if !self.add(found)? {
                            return Ok(EndReason::Size);
                        }
                    }
                    Message::Records(mut slot) => {
                        let BlockSlot { records, block, .. } = &mut *slot;
                        if !self.output.write(records, block)? {
                            return Ok(EndReason::Size);
                        }
                        let _ = channels.free.send(slot.emptied());
                    }
                    Message::Done(CopyResult { result, refused_payloads }) => {
                        self.refused_payloads = refused_payloads;
                        return result;
                    }
                }
            }
        }
    }

    /// Adds the rings that `next_ring` has for now.
    fn ask_for_rings(&mut self, requests: &Sender<Request>) {
        while let Some(next_ring) = &mut self.next_ring {
            match next_ring() {
                NextRing::Ring(reader) => {
                    let _ = requests.send(Request::Add(reader));
                }
                NextRing::NotYet => return,
                NextRing::NoMore => self.next_ring = None,
            }
        }
        let _ = requests.send(Request::NoMoreRings);
    }

    /// Adds rings that were found. Returns false if the files have no room for their descriptions.
    fn add(&mut self, found: DiscoveredRings) -> Result<bool, CaptureError> {
        self.problems.extend(found.problems);
        self.output.recorders_found(found.recorders);
        for ring in found.rings {
            if !self.output.add_ring(ring)? {
                return Ok(false);
            }
        }
        Ok(true)
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

    /// Ends the last file, and returns the result of the capture.
    fn finish(
        mut self,
        mut reason: EndReason,
        progress: &mut dyn FnMut(&CaptureProgress) -> ControlFlow<()>,
    ) -> Result<CaptureSummary, CaptureError> {
        let lost_pages = |ring: &SourceRing| ring.reader.as_ref().and_then(Reader::lost_pages);
        if reason == EndReason::WritersEnded
            && let Some(lost) = self.output.rings.iter().find_map(lost_pages)
        {
            let is_truncated = lost == LostPages::Truncated;
            reason = if is_truncated { EndReason::Truncated } else { EndReason::Unreadable };
        }
        let elapsed = self.started.elapsed();
        let finished = self.output.finish_part(reason);
        finished.map_err(|error| self.output.failed(error))?;
        let _ = progress(&self.progress());
        let rings = &self.output.rings;
        let named = |ring: &SourceRing| lost_pages(ring).map(|lost| (ring.described.name.clone(), lost));
        let lost_pages: Vec<(String, LostPages)> = rings.iter().filter_map(named).collect();
        let mut problems = self.problems;
        problems.extend(lost_pages.iter().map(|(name, lost)| format!("{name}: {}", lost.advice())));
        let refused = rings.iter().zip(&self.refused_payloads).filter(|(_, refused)| **refused > 0);
        problems.extend(refused.map(|(ring, refused)| {
            format!(
                "the ring {} is damaged: {refused} of its payloads share bytes with others or lie after its buffer, and are left out; their descriptors \
                 are kept",
                ring.described.name
            )
        }));
        let names = rings.iter().map(|ring| ring.described.name.clone());
        Ok(CaptureSummary {
            reason,
            elapsed,
            // The list ends before the first ring for whose description no file had room. Such rings were not captured.
            rings: names.take(self.output.finished.rings.len()).collect(),
            first_seqnos: rings.iter().map(|ring| ring.first_seqno).take(self.output.finished.rings.len()).collect(),
            stats: self.output.finished,
            lower_level_events: self.output.finished_lower_level_events,
            bytes: self.output.finished_bytes.saturating_sub(self.output.removed_bytes),
            removed_files: self.output.removed_files,
            removed_bytes: self.output.removed_bytes,
            of_files: self.output.removable.into(),
            files: Vec::new(),
            problems,
            lost_pages,
        })
    }

    fn progress(&self) -> CaptureProgress {
        let all = |count: &dyn Fn(&RingStats) -> u64| {
            let now = self.output.rings.iter().map(|ring| count(&ring.stats));
            now.chain(self.output.finished.rings.iter().map(count)).fold(0, u64::saturating_add)
        };
        let removed = self.output.rings.iter().map(|ring| ring.stats.removed).fold(0, u64::saturating_add);
        CaptureProgress {
            elapsed: self.started.elapsed(),
            rings: self.output.rings.len(),
            events: all(&|stats| stats.events).saturating_add(removed),
            lost: all(&RingStats::lost),
            overwritten_before: all(&|stats| stats.missing_by(GapCause::OverwrittenBefore)),
            bytes: self.output.bytes(),
            files: self.output.files(),
        }
    }
}

/// Returns the stop of a capture that stops now, by the clock that stamps events.
fn stop_now(reason: EndReason) -> Stop {
    Stop::new(reason, Clock::global().now_epoch_nanos(), Instant::now() + STOP_GRACE)
}
