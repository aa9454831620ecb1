//! From rings to files.

use super::account::{CaptureAccount, CaptureEnd, EndReason, RingAccount};
use super::error::{CaptureError, CaptureErrorKind};
use super::format::{FileHeader, PAYLOAD_BYTES_MAX};
use super::item::LossCause;
use super::parts::{Parts, PathParts};
use super::sources::Sources;
use super::write::CaptureWriter;
use crate::reader::{Descriptor, GapCause, MergedItem, PayloadRead};
use std::io::Write;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// How often limits are looked at, writers asked after, and progress told.
const TICK: Duration = Duration::from_millis(100);
/// How many items are copied between two looks at the time.
const ITEMS_AT_ONCE: u32 = 1 << 10;
/// How long to sleep between looks while nothing comes.
const IDLE_SLEEP: Duration = Duration::from_micros(500);
/// How long an end waits for events that were begun before it.
const END_GRACE: Duration = Duration::from_millis(50);
/// Events wait for the next block at most this long.
const FLUSH_INTERVAL: Duration = Duration::from_secs(1);

/// What to capture, and when to stop.
#[derive(Clone, Debug)]
#[must_use]
pub struct CaptureOptions {
    level: i32,
    duration: Option<Duration>,
    max_bytes: Option<u64>,
    rotate_bytes: Option<u64>,
    rotate_every: Option<Duration>,
    keep_files: Option<usize>,
    only_new: bool,
    overwrite: bool,
}

impl Default for CaptureOptions {
    fn default() -> Self {
        Self::new()
    }
}

impl CaptureOptions {
    /// Everything that the rings hold and go on to record, until their writers end, in one file that must not exist.
    pub fn new() -> Self {
        Self {
            level: 3,
            duration: None,
            max_bytes: None,
            rotate_bytes: None,
            rotate_every: None,
            keep_files: None,
            only_new: false,
            overwrite: false,
        }
    }

    /// Compression level of zstd, 1 to 22. Default: 3.
    pub fn compression_level(mut self, level: i32) -> Self {
        self.level = level;
        self
    }

    /// Stop after this time; at 0 everything recorded until now is taken. Default: none.
    pub fn duration(mut self, duration: Duration) -> Self {
        self.duration = Some(duration);
        self
    }

    /// Stop when the files have so many bytes together. It is looked at with each block, about once a second or megabyte of
    /// events, so a file can be somewhat larger. Default: none.
    pub fn max_bytes(mut self, bytes: u64) -> Self {
        self.max_bytes = Some(bytes);
        self
    }

    /// Begin a new file when the current one has so many bytes; looked at as [`Self::max_bytes`]. Each file can be read alone.
    /// `trace.evc` becomes `trace.0001.evc` and so on. Default: none.
    pub fn rotate_bytes(mut self, bytes: u64) -> Self {
        self.rotate_bytes = Some(bytes);
        self
    }

    /// Begin a new file after this time; as [`Self::rotate_bytes`]. Default: none.
    pub fn rotate_every(mut self, time: Duration) -> Self {
        self.rotate_every = Some(time);
        self
    }

    /// Of rotated files, keep only the last so many. Default: all.
    pub fn keep_files(mut self, files: usize) -> Self {
        self.keep_files = Some(files);
        self
    }

    /// Leave out what the rings hold already. Default: false.
    pub fn only_new(mut self, only_new: bool) -> Self {
        self.only_new = only_new;
        self
    }

    /// Replace files that exist. Default: false.
    pub fn overwrite(mut self, overwrite: bool) -> Self {
        self.overwrite = overwrite;
        self
    }

    fn rotates(&self) -> bool {
        self.rotate_bytes.is_some() || self.rotate_every.is_some()
    }
}

/// How far a capture is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct CaptureProgress {
    /// Time since its begin.
    pub elapsed: Duration,
    /// Rings read.
    pub rings: usize,
    /// Events taken.
    pub events: u64,
    /// Events lost.
    pub lost: u64,
    /// Bytes written.
    pub bytes: u64,
    /// Files begun.
    pub files: u32,
}

/// What a capture has done.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct CaptureSummary {
    /// Why it ended.
    pub reason: EndReason,
    /// How long it took.
    pub elapsed: Duration,
    /// The rings' names, in the order of the account.
    pub rings: Vec<String>,
    /// What became of each ring's events, in all files together.
    pub account: CaptureAccount,
    /// Bytes written, of files removed again, too.
    pub bytes: u64,
    /// The files, without those that were removed again; empty for [`capture_to`].
    pub files: Vec<PathBuf>,
    /// What went wrong without ending the capture: shards that could not be opened.
    pub problems: Vec<String>,
}

/// Copies the events of the rings with these names or paths, live or dead, into a file. Of a perf recorder all shards are
/// taken, those that it makes meanwhile too.
///
/// `progress` is called about ten times a second; with [`ControlFlow::Break`] it ends the capture in good order. Everything
/// recorded before the end is taken. Without an end in the options the capture lasts until the writers end.
///
/// # Errors
/// A ring cannot be opened, or is a perf ring of another schema; a file cannot be written. What was written until then can
/// be read.
pub fn capture(
    names: &[PathBuf],
    output: &Path,
    options: &CaptureOptions,
    progress: &mut dyn FnMut(&CaptureProgress) -> ControlFlow<()>,
) -> Result<CaptureSummary, CaptureError> {
    if output.file_name().is_none() {
        return Err(
            CaptureError::new(CaptureErrorKind::BadOptions, "cannot write it: not the name of a file").at(output)
        );
    }
    let parts = Parts::Path(PathParts {
        output: output.to_path_buf(),
        rotates: options.rotates(),
        keep: options.keep_files.filter(|_| options.rotates()),
        overwrite: options.overwrite,
        written: Default::default(),
    });
    Capture::begin(names, parts, options)?.run(progress)
}

/// As [`capture`], into something that the caller has opened. It is not rotated.
///
/// # Errors
/// As [`capture`].
pub fn capture_to(
    names: &[PathBuf],
    out: impl Write + 'static,
    options: &CaptureOptions,
    progress: &mut dyn FnMut(&CaptureProgress) -> ControlFlow<()>,
) -> Result<CaptureSummary, CaptureError> {
    let options = CaptureOptions { rotate_bytes: None, rotate_every: None, ..options.clone() };
    Capture::begin(names, Parts::Writer(Some(Box::new(out))), &options)?.run(progress)
}

struct Capture<'o> {
    options: &'o CaptureOptions,
    sources: Sources,
    parts: Parts,
    writer: CaptureWriter,
    part: u32,
    /// Rings that the current file describes.
    described: usize,
    started: Instant,
    part_started: Instant,
    last_flush: Instant,
    /// Bytes of the files before the current one.
    finished_bytes: u64,
    /// The accounts of the files before the current one, added up.
    finished: Vec<RingAccount>,
}

impl<'o> Capture<'o> {
    fn begin(names: &[PathBuf], mut parts: Parts, options: &'o CaptureOptions) -> Result<Self, CaptureError> {
        if !(1..=22).contains(&options.level) {
            let message = format!("the compression level is {}, expected 1 to 22", options.level);
            return Err(CaptureError::new(CaptureErrorKind::BadOptions, message));
        }
        let sources = Sources::open(names, options.only_new)?;
        let part = if options.rotates() { 1 } else { 0 };
        let writer = begin_part(&mut parts, options, part)?;
        let now = Instant::now();
        let mut capture = Self {
            options,
            sources,
            parts,
            writer,
            part,
            described: 0,
            started: now,
            part_started: now,
            last_flush: now,
            finished_bytes: 0,
            finished: Vec::new(),
        };
        capture.describe_rings()?;
        Ok(capture)
    }

    fn run(
        mut self,
        progress: &mut dyn FnMut(&CaptureProgress) -> ControlFlow<()>,
    ) -> Result<CaptureSummary, CaptureError> {
        let ended = self.copy(progress);
        let reason = match ended {
            Ok(reason) => reason,
            Err(error) => return Err(self.named(error)),
        };
        let elapsed = self.started.elapsed();
        match self.end_part(reason) {
            Ok(()) => {}
            Err(error) => return Err(self.named(error)),
        }
        let bytes = self.finished_bytes;
        let _ = progress(&self.progress());
        Ok(CaptureSummary {
            reason,
            elapsed,
            rings: self.sources.rings.iter().map(|ring| ring.described.name.clone()).collect(),
            account: CaptureAccount { rings: self.finished },
            bytes,
            files: self.parts.into_files(),
            problems: self.sources.problems,
        })
    }

    /// Errors of writing get the name of the file.
    fn named(&self, error: CaptureError) -> CaptureError {
        match self.parts.current() {
            Some(path) if error.kind() != CaptureErrorKind::Ring => error.at(path),
            _ => error,
        }
    }

    /// Copies until there is a reason to stop.
    fn copy(
        &mut self,
        progress: &mut dyn FnMut(&CaptureProgress) -> ControlFlow<()>,
    ) -> Result<EndReason, CaptureError> {
        let mut next_tick = Instant::now();
        let mut end: Option<(EndReason, u64, Instant)> = None;
        loop {
            let mut is_idle = false;
            for _ in 0..ITEMS_AT_ONCE {
                match self.copy_item(end.map(|(_, end_epoch_nanos, _)| end_epoch_nanos))? {
                    Copied::Item => {}
                    Copied::Nothing => {
                        is_idle = true;
                        break;
                    }
                    Copied::BehindTheEnd => return Ok(end.map_or(EndReason::Duration, |(reason, ..)| reason)),
                }
            }
            let now = Instant::now();
            if now >= next_tick {
                next_tick = now + TICK;
                if is_idle {
                    self.sources.check_liveness();
                }
                if self.sources.discover(false)? {
                    self.describe_rings()?;
                    is_idle = false;
                }
                self.tick(now)?;
                let wants_end = progress(&self.progress()).is_break();
                let reason = self.reason_to_end(now, wants_end);
                end = end.or_else(|| reason.map(|reason| (reason, now_epoch_nanos(), now + END_GRACE)));
            }
            if is_idle {
                if self.sources.merger.has_ended() && !self.sources.discover(false)? {
                    return Ok(EndReason::WritersEnded);
                }
                if let Some((reason, _, deadline)) = end
                    && now >= deadline
                {
                    return Ok(reason);
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
        } else if self.options.max_bytes.is_some_and(|max| self.finished_bytes + self.writer.bytes() >= max) {
            Some(EndReason::Size)
        } else {
            None
        }
    }

    fn copy_item(&mut self, end_epoch_nanos: Option<u64>) -> Result<Copied, CaptureError> {
        let item = self.sources.merger.next();
        let index = match item {
            MergedItem::NotReady => return Ok(Copied::Nothing),
            MergedItem::Event { input, .. } | MergedItem::Gap { input, .. } => input,
        };
        let ring = &mut self.sources.rings[index];
        let index = index as u32;
        let is_first = !std::mem::replace(&mut ring.has_read, true);
        let mut missing_before = std::mem::take(&mut ring.missing_before);
        match item {
            MergedItem::NotReady => {}
            MergedItem::Gap { gap, .. } => {
                let (mut first_seqno, mut count) = (gap.first_seqno, gap.count);
                let mut cause = LossCause::from(gap.cause);
                // The ring went round before its first event was read: that belongs to what was missing before.
                if is_first && gap.cause == GapCause::Overwritten {
                    (first_seqno, count) = (first_seqno - missing_before, count + missing_before);
                    (missing_before, cause) = (0, LossCause::OverwrittenBefore);
                }
                tell_missing_before(&mut self.writer, &mut ring.account, index, first_seqno, missing_before);
                self.writer.gap(index, ring.key.gap(), first_seqno, count, cause);
                ring.account.count_gap(first_seqno, count, cause);
            }
            MergedItem::Event { descriptor, payload, .. } => {
                let stamp = descriptor.record_epoch_nanos;
                if end_epoch_nanos.is_some_and(|end| stamp > end) {
                    return Ok(Copied::BehindTheEnd);
                }
                tell_missing_before(&mut self.writer, &mut ring.account, index, descriptor.seqno, missing_before);
                self.writer.event(index, ring.key.event(stamp), &descriptor, payload);
                count_event(&mut ring.account, &descriptor, payload);
            }
        }
        if self.writer.is_block_full() {
            self.flush()?;
        }
        Ok(Copied::Item)
    }

    fn tick(&mut self, now: Instant) -> Result<(), CaptureError> {
        if now.duration_since(self.last_flush) >= FLUSH_INTERVAL {
            self.flush()?;
        }
        let is_full = self.options.rotate_bytes.is_some_and(|bytes| self.writer.bytes() >= bytes);
        let is_old = self.options.rotate_every.is_some_and(|time| now.duration_since(self.part_started) >= time);
        if is_full || is_old {
            self.end_part(EndReason::Rotated)?;
            self.part += 1;
            self.writer = begin_part(&mut self.parts, self.options, self.part)?;
            self.part_started = now;
            self.described = 0;
            self.sources.recorders.iter_mut().for_each(|recorder| recorder.tables.restart());
            for ring in &mut self.sources.rings {
                let last_seqno = ring.account.last_seqno;
                ring.described.first_seqno = last_seqno.saturating_add(1);
                ring.account = RingAccount { last_seqno, ..RingAccount::default() };
            }
            self.describe_rings()?;
        }
        Ok(())
    }

    /// Writes what the current file does not yet say about rings.
    fn describe_rings(&mut self) -> Result<(), CaptureError> {
        for ring in &self.sources.rings[self.described..] {
            self.writer.ring(&ring.described)?;
        }
        self.described = self.sources.rings.len();
        self.write_tables()
    }

    fn write_tables(&mut self) -> Result<(), CaptureError> {
        let mut out = Vec::new();
        let mut entries = 0;
        for recorder in &mut self.sources.recorders {
            let shard0 = &self.sources.rings[recorder.shard0 as usize].reader;
            entries += recorder.tables.put_new(&mut out, recorder.shard0, shard0);
            // Tables can be larger than a block.
            if out.len() > PAYLOAD_BYTES_MAX / 2 {
                self.writer.tables(&out, entries)?;
                out.clear();
                entries = 0;
            }
        }
        if entries > 0 { self.writer.tables(&out, entries) } else { Ok(()) }
    }

    /// Tables go before the events that refer to them.
    fn flush(&mut self) -> Result<(), CaptureError> {
        self.last_flush = Instant::now();
        self.write_tables()?;
        self.writer.flush_events()
    }

    fn end_part(&mut self, reason: EndReason) -> Result<(), CaptureError> {
        for (index, ring) in self.sources.rings.iter_mut().enumerate() {
            // A ring that was gone before anything of it could be read.
            let missing = std::mem::take(&mut ring.missing_before);
            let next = ring.account.last_seqno.saturating_add(missing).saturating_add(1);
            tell_missing_before(&mut self.writer, &mut ring.account, index as u32, next, missing);
            ring.account.close(&ring.reader);
        }
        self.flush()?;
        let rings: Vec<RingAccount> = self.sources.rings.iter().map(|ring| ring.account.clone()).collect();
        add_up(&mut self.finished, &rings);
        let ended_epoch_nanos = now_epoch_nanos();
        self.writer.finish(&CaptureEnd { reason, ended_epoch_nanos, account: CaptureAccount { rings } })?;
        self.finished_bytes += self.writer.bytes();
        Ok(())
    }

    fn progress(&self) -> CaptureProgress {
        let all = |count: &dyn Fn(&RingAccount) -> u64| {
            let now = self.sources.rings.iter().map(|ring| count(&ring.account));
            now.chain(self.finished.iter().map(count)).fold(0, u64::saturating_add)
        };
        CaptureProgress {
            elapsed: self.started.elapsed(),
            rings: self.sources.rings.len(),
            events: all(&|account| account.events),
            lost: all(&RingAccount::lost),
            bytes: self.finished_bytes + self.writer.bytes(),
            files: self.part.max(1),
        }
    }
}

enum Copied {
    Item,
    Nothing,
    BehindTheEnd,
}

fn begin_part(parts: &mut Parts, options: &CaptureOptions, part: u32) -> Result<CaptureWriter, CaptureError> {
    let header = FileHeader {
        part,
        started_epoch_nanos: now_epoch_nanos(),
        started_boot_nanos: clock_nanos(rustix::time::ClockId::Boottime),
        started_monotonic_nanos: clock_nanos(rustix::time::ClockId::Monotonic),
    };
    let out = parts.next(part)?;
    let writer = CaptureWriter::new(out, options.level, &header);
    writer.map_err(|error| match parts.current() {
        Some(path) => error.at(path),
        None => error,
    })
}

fn tell_missing_before(writer: &mut CaptureWriter, account: &mut RingAccount, ring: u32, next_seqno: u64, count: u64) {
    if count > 0 {
        let first_seqno = next_seqno.saturating_sub(count);
        writer.gap(ring, 0, first_seqno, count, LossCause::OverwrittenBefore);
        account.count_gap(first_seqno, count, LossCause::OverwrittenBefore);
    }
}

fn count_event(account: &mut RingAccount, descriptor: &Descriptor, payload: PayloadRead<'_>) {
    account.events += 1;
    account.last_seqno = descriptor.seqno;
    match payload {
        PayloadRead::Valid(bytes) if bytes.len() > PAYLOAD_BYTES_MAX => account.omitted_payloads += 1,
        PayloadRead::Valid(_) => {}
        PayloadRead::Expired => account.expired_payloads += 1,
        PayloadRead::Malformed => account.malformed_payloads += 1,
    }
}

/// Adds one file's accounts to those of the files before it.
fn add_up(total: &mut Vec<RingAccount>, file: &[RingAccount]) {
    total.resize(file.len().max(total.len()), RingAccount::default());
    for (total, file) in total.iter_mut().zip(file) {
        let mut sum = file.clone();
        sum.events += total.events;
        sum.expired_payloads += total.expired_payloads;
        sum.malformed_payloads += total.malformed_payloads;
        sum.omitted_payloads += total.omitted_payloads;
        for (sum, lost) in sum.lost_by_cause.iter_mut().zip(total.lost_by_cause) {
            *sum = sum.saturating_add(lost);
        }
        *total = sum;
    }
}

fn now_epoch_nanos() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_nanos()).unwrap_or(u64::MAX)
}

fn clock_nanos(clock: rustix::time::ClockId) -> u64 {
    let time = rustix::time::clock_gettime(clock);
    (time.tv_sec as u64).saturating_mul(1_000_000_000).saturating_add(time.tv_nsec as u64)
}
