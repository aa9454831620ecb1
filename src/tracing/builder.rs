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

/// Default size of a shard, as exponents of 2: 2^17 events, whose descriptors take 8 MiB, and 2^23 bytes (8 MiB) for
/// their fields.
const DEFAULT_SHIFTS: (u32, u32) = (17, 23);
/// Default size of the tables of call sites and threads, as an exponent of 2: 2^22 bytes (4 MiB).
const DEFAULT_TABLES_SHIFT: u32 = 22;
/// Upper bound of the default number of shards. [`PerfRecorderBuilder::shards`] can set more.
const DEFAULT_SHARDS_MAX: usize = 16;

/// The configuration of a [`PerfRecorder`]. [`PerfRecorder::builder`] starts a configuration, and [`Self::build`]
/// makes the recorder from it, with one shard.
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

    /// Sets the place and size of the rings: `<name-or-path>[:<descriptor-shift>:<payload-shift>]`.
    ///
    /// Each shard is a file. Shard 0 has the given name, and shard *n* has that name with `.n` at its end.
    /// [`RecorderBuilder::config`] explains in which directory the files are.
    ///
    /// The shifts are exponents of 2. A shard has room for 2^descriptor-shift events (15 to 32, default 17, which
    /// takes 8 MiB) and for 2^payload-shift bytes of fields (21 to 40, default 23, which takes 8 MiB). A span takes 4
    /// events. A field takes 4 bytes and the bytes of its value.
    pub fn config(mut self, config: impl AsRef<OsStr>) -> Self {
        self.ring = self.ring.config(config);
        self
    }

    /// Makes rings in anonymous memory, without names. This is the default if [`Self::config`] is not called.
    pub fn anonymous(mut self) -> Self {
        self.ring = self.ring.anonymous();
        self
    }

    /// Sets the descriptor shift and the payload shift of each shard; [`Self::config`] explains them. They are used
    /// instead of shifts in the configuration string.
    pub fn shifts(mut self, descriptor_shift: u32, payload_shift: u32) -> Self {
        self.ring = self.ring.shifts(descriptor_shift, payload_shift);
        self
    }

    /// Sets how many shards the recorder may make, from 1 to 1,024. Default: two for each processor that this program
    /// may use, and two more, but at most 16.
    ///
    /// The recorder begins with one shard. It makes another one when a new thread records and every shard has a
    /// thread already. When the limit is reached, threads share shards. Such threads compete for cache lines, but
    /// never wait for each other.
    pub fn shards(mut self, limit: usize) -> Self {
        self.shards = Some(limit);
        self
    }

    /// Sets the size of the tables of call sites and threads to 2^shift bytes, with a shift of 13 to 40. Three
    /// quarters hold call sites, one quarter holds threads. Default: a shift of 22, which means 4 MiB, for about
    /// 15,000 call sites and 30,000 threads.
    ///
    /// Each call site and each thread is also recorded as an event. If a call site or thread does not fit its table,
    /// the event is its only record: a reader knows it only while the event is still in the ring. The recorder counts
    /// such call sites and threads.
    pub fn tables_shift(mut self, shift: u32) -> Self {
        self.tables_shift = shift;
        self
    }

    /// Limits the text of a `Debug` or `Display` value (`?value`, `%value`) to `bytes`. A longer text is cut and
    /// marked as cut. If `bytes` is 0, such values are not formatted: a reader sees the field, but not its value.
    /// Default: 1,024.
    pub fn debug_bytes_max(mut self, bytes: usize) -> Self {
        self.limits.debug_bytes_max = bytes;
        self
    }

    /// Limits two kinds of text to `bytes`: the message of a log record, and the text of an error with its sources. A
    /// longer text is cut and marked as cut. Default: 2,048.
    pub fn text_bytes_max(mut self, bytes: usize) -> Self {
        self.limits.text_bytes_max = bytes;
        self
    }

    /// Limits all fields of one span or event together to `bytes`, at most 32,768. Default: 8,192. Text and byte
    /// strings that do not fit are cut and marked as cut. Any other field that does not fit is left out, and the
    /// event counts it.
    pub fn fields_bytes_max(mut self, bytes: usize) -> Self {
        self.limits.fields_bytes_max = bytes;
        self
    }

    /// Names fields whose values must not be recorded, such as secrets and personal data. A further call adds its
    /// names to the names of earlier calls.
    ///
    /// A name is compared without regard to upper and lower case. It applies to a field with exactly this name, and
    /// to a field whose dotted name ends with it: `password` applies to `user.password`, but not to
    /// `password_length`. The recorder neither reads nor formats the value, and a reader sees that the value was left
    /// out.
    ///
    /// Names apply to fields of spans and log records. They do not apply to the text of messages, to the values of
    /// other fields, or to typed events, which have an attribute of their own, `#[event(redact)]`.
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

    /// Sets whether the recorder touches all memory of a shard when it makes the shard, so that later events cause no
    /// page faults. Default: true. See [`RecorderBuilder::prefault`].
    pub fn prefault(mut self, prefault: bool) -> Self {
        self.ring = self.ring.prefault(prefault);
        self
    }

    /// Sets whether the files stay when the recorder ends normally. Default: false. After a crash the files always
    /// stay.
    pub fn keep(mut self, keep: bool) -> Self {
        self.ring = self.ring.keep(keep);
        self
    }

    /// Makes the files stay when the recorder ends, if the environment variable `EVENTRING_KEEP` says so. Otherwise
    /// does not change the setting.
    pub(super) fn keep_from_env(mut self) -> Self {
        self.ring = self.ring.keep_from_env();
        self
    }

    /// Sets the permission bits of the files. Default: 0640.
    pub fn file_mode(mut self, mode: u32) -> Self {
        self.ring = self.ring.file_mode(mode);
        self
    }

    /// Sets the permission bits with which the ring directory is made, if it does not exist. Default: 0750. If the
    /// bits allow others to write, the directory also gets the sticky bit.
    pub fn directory_mode(mut self, mode: u32) -> Self {
        self.ring = self.ring.directory_mode(mode);
        self
    }

    /// Sets the clock. Default: the processor's tick counter where it is usable, otherwise CLOCK_REALTIME. Use the
    /// same clock for rings of typed events, so that their times can be compared with the times of spans.
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
            // The default is larger than the number of processors, because a thread that waits most of the time holds
            // a shard, too. With spare shards, two busy threads need not share a shard.
            (2 * processors + 2).min(DEFAULT_SHARDS_MAX)
        });
        let shards = shards.clamp(1, SHARDS_MAX);
        // All shards of a recorder carry the same random group number in their headers. The number shows a reader that
        // the shards belong together. Names, files and process ids would not show this, because a later recorder may
        // have the same.
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
