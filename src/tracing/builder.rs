//! The configuration of a perf recorder.

use super::core::PerfCore;
use super::fields::FieldLimits;
use super::recorder::PerfRecorder;
use super::redact::RedactedFields;
use super::shards::Shards;
use super::tables::Tables;
use crate::clock::ClockKind;
use crate::layout::extension::SHARDS_MAX;
use crate::recorder::{ContentDescription, Recorder, RecorderBuilder, RecorderError, Shard};
use crate::schema::perf::PerfEvent;
use std::ffi::OsStr;
use std::hash::{BuildHasher, Hasher, RandomState};

/// Default descriptor shift and payload shift of a shard: 2^17 events, whose descriptors take 8 MiB, and 2^23 bytes (8
/// MiB) for fields.
const DEFAULT_SHIFTS: (u32, u32) = (17, 23);
/// Default shift of the tables of call sites and threads: 2^22 bytes (4 MiB).
const DEFAULT_TABLES_SHIFT: u32 = 22;
/// Largest default number of shards. A program can ask for more.
const DEFAULT_SHARDS_MAX: usize = 16;

/// The configuration of a [`PerfRecorder`]. [`PerfRecorder::builder`] makes it; [`Self::build`] makes shard 0.
#[derive(Clone, Debug)]
#[must_use = "nothing happens before `build`"]
pub struct PerfRecorderBuilder {
    ring: RecorderBuilder,
    shards: Option<usize>,
    tables_shift: u32,
    limits: FieldLimits,
    redacted: RedactedFields,
}

impl PerfRecorderBuilder {
    pub(super) fn new() -> Self {
        let (descriptor_shift, payload_shift) = DEFAULT_SHIFTS;
        let ring = Recorder::builder(ContentDescription::of::<PerfEvent>()).compact(true);
        Self {
            ring: ring.default_shifts(descriptor_shift, payload_shift),
            shards: None,
            tables_shift: DEFAULT_TABLES_SHIFT,
            limits: FieldLimits::default(),
            redacted: RedactedFields::default(),
        }
    }

    /// Sets the place and size of the rings, as `<name-or-path>[:<descriptor-shift>:<payload-shift>]`.
    ///
    /// Shard 0 is the file of that name (see [`RecorderBuilder::config`] for the directory); the name of shard *n* ends
    /// with `.n`. A shard has 2^descriptor-shift events (15 to 32, default 17: 8 MiB) and 2^payload-shift bytes for
    /// fields (21 to 40, default 23: 8 MiB). A span takes 4 events; a field takes 4 bytes and its value.
    pub fn config(mut self, config: impl AsRef<OsStr>) -> Self {
        self.ring = self.ring.config(config);
        self
    }

    /// Makes rings without names, in anonymous memory. This is the default, if [`Self::config`] is not called.
    pub fn anonymous(mut self) -> Self {
        self.ring = self.ring.anonymous();
        self
    }

    /// Sets both shifts of a shard. They replace the shifts in the configuration string. See [`Self::config`].
    pub fn shifts(mut self, descriptor_shift: u32, payload_shift: u32) -> Self {
        self.ring = self.ring.shifts(descriptor_shift, payload_shift);
        self
    }

    /// Sets the largest number of shards, from 1 to 1,024. Default: two, and two for each
    /// processor that this program may use; at most 16.
    ///
    /// The recorder makes a further shard when a thread records for the first time and every shard has a thread
    /// already. Threads beyond the limit share shards. Threads that share a shard compete for cache lines, but never
    /// wait for each other.
    pub fn shards(mut self, limit: usize) -> Self {
        self.shards = Some(limit);
        self
    }

    /// Sets the bytes of the tables of call sites (three quarters) and threads (one quarter), as 2^shift, 13 to 40.
    /// Default: 22, 4 MiB, for some 15,000 call sites and 30,000 threads. The recorder counts the entries that do not
    /// fit. Each call site and each thread is also recorded as an event. A reader knows an entry that did not fit only
    /// as long as its event is in the ring.
    pub fn tables_shift(mut self, shift: u32) -> Self {
        self.tables_shift = shift;
        self
    }

    /// Limits the text of a `Debug` or `Display` value (`?value`, `%value`) to this many bytes. A longer text is cut
    /// and marked as cut. If `bytes` is 0, values are not formatted, and their fields are recorded as not formatted.
    /// Default: 1,024.
    pub fn debug_bytes_max(mut self, bytes: usize) -> Self {
        self.limits.debug_bytes_max = bytes;
        self
    }

    /// Limits the message of a log record, and the text of an error with its sources, to this many bytes. A longer text
    /// is cut and marked as cut. Default: 2,048.
    pub fn text_bytes_max(mut self, bytes: usize) -> Self {
        self.limits.text_bytes_max = bytes;
        self
    }

    /// Limits the fields of one span or event to this many bytes, at most 32,768. Default: 8,192. Text or bytes that do
    /// not fit are cut and marked as cut. A field with a value of another type is left out if it does not fit, and the
    /// event counts the fields that were left out.
    pub fn fields_bytes_max(mut self, bytes: usize) -> Self {
        self.limits.fields_bytes_max = bytes;
        self
    }

    /// Names fields that are not to be recorded, such as secrets and personal data. The names are added to the names of
    /// earlier calls.
    ///
    /// A name applies to fields of that name, in upper or lower case, and to fields whose dotted name ends with it:
    /// `password` also applies to `user.password`, but not to `password_length`. The values are neither read nor
    /// formatted, and a reader sees that they were left out. Names apply to fields of spans and log records. They do
    /// not apply to text inside of messages, to other fields' values, or to typed events, which have
    /// `#[event(redact)]`.
    ///
    /// ```
    /// use eventring::tracing::{PerfRecorder, RecorderSubscriber};
    ///
    /// let recorder = PerfRecorder::builder().anonymous().redact_fields(["password", "http.cookie"]).build()?;
    /// tracing::subscriber::with_default(RecorderSubscriber::new(recorder), || {
    ///     tracing::info!(user.name = "kim", user.password = "hunter2", "signed in"); // user.password=<redacted>
    /// });
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn redact_fields(mut self, names: impl IntoIterator<Item = impl AsRef<str>>) -> Self {
        self.redacted = self.redacted.with(names);
        self
    }

    /// Sets whether all memory of a shard is touched when the shard is made. Default: true. See
    /// [`RecorderBuilder::prefault`].
    pub fn prefault(mut self, prefault: bool) -> Self {
        self.ring = self.ring.prefault(prefault);
        self
    }

    /// Sets whether the files stay when the recorder ends. Default: false. (After a crash they always stay.)
    pub fn keep(mut self, keep: bool) -> Self {
        self.ring = self.ring.keep(keep);
        self
    }

    /// Keeps the files when the recorder ends, if the environment variable `EVENTRING_KEEP` is set to a value other
    /// than `0`. Otherwise leaves the setting as it is.
    pub(super) fn keep_from_env(mut self) -> Self {
        self.ring = self.ring.keep_from_env();
        self
    }

    /// Sets the permission bits of the files. Default: 0640.
    pub fn file_mode(mut self, mode: u32) -> Self {
        self.ring = self.ring.file_mode(mode);
        self
    }

    /// Sets the permission bits of the ring directory, if it has to be made. Default: 0750. A directory that others may
    /// write to also gets the sticky bit.
    pub fn directory_mode(mut self, mode: u32) -> Self {
        self.ring = self.ring.directory_mode(mode);
        self
    }

    /// Sets the clock. Default: the tick counter where it is usable, otherwise CLOCK_REALTIME. Use the same clock for
    /// typed events, so that the times of both are comparable.
    pub fn clock(mut self, kind: ClockKind) -> Self {
        self.ring = self.ring.clock(kind);
        self
    }

    /// Makes shard 0 with its tables.
    ///
    /// # Errors
    /// The errors of [`RecorderBuilder::build`].
    pub fn build(self) -> Result<PerfRecorder, RecorderError> {
        let shards = self.shards.unwrap_or_else(|| {
            let processors = std::thread::available_parallelism().map_or(1, std::num::NonZeroUsize::get);
            // The default is more than the number of processors. Threads that wait most of the time have shards, too,
            // and two busy threads should nevertheless not have to share a shard.
            (2 * processors + 2).min(DEFAULT_SHARDS_MAX)
        });
        let shards = shards.clamp(1, SHARDS_MAX);
        // All shards of a recorder have the same group number, by which a reader knows that they belong together. The
        // number is random, because names, files and process ids may be used again, and a reader must not take another
        // recorder's shard for one of our shards.
        let group = RandomState::new().build_hasher().finish().max(1);
        let shard = Shard { index: 0, limit: shards as u64, group };
        let shard0 = self.ring.clone().context_shift(self.tables_shift).shard(shard).build()?;
        let geometry = shard0.geometry();
        let shifts = [geometry.descriptor_capacity(), geometry.payload_buf_bytes()].map(u64::trailing_zeros);
        let tables = Tables::new(&shard0);
        let shards = Shards::new(shard0, self.ring.shifts(shifts[0], shifts[1]), shard);
        Ok(PerfRecorder::from_core(PerfCore::new(shards, tables, self.limits.checked(), self.redacted)))
    }
}
