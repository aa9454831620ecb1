//! The configuration of a perf recorder.

use crate::clock::ClockKind;
use crate::layout::extension::SHARDS_MAX;
use crate::layout::fit::STEP_BYTES;
use crate::layout::limits::MAX_CONTEXT_SHIFT;
use crate::now::NowTable;
use crate::recorder::{ContentDescription, Recorder, RecorderBuilder, RecorderError, Shard, too_little_memory};
use crate::schema::perf::PerfEvent;
use crate::shm::RingSize;
use crate::sync::locked_section::LockedSection;
use crate::tracing::record::fields::limits::FieldLimits;
use crate::tracing::record::fields::redact::RedactedFields;
use crate::tracing::record::perf_recorder::handle::PerfRecorder;
use crate::tracing::record::perf_recorder::memory_plan::{DEFAULT_SHIFTS, MemoryPlan, ShardCount};
use crate::tracing::record::rings::core::PerfCore;
use crate::tracing::record::rings::shards::Shards;
use crate::tracing::record::rings::tables::Tables;
use crate::tracing::record::threads::instruction_count::InstructionSource;
use crate::tracing::record::threads::time::{ThreadTimes, share::DEFAULT_SHARE};
use std::ffi::OsStr;
use std::hash::{BuildHasher, Hasher, RandomState};

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
    all_at_build: bool,
    tables_shift: u32,
    limits: FieldLimits,
    redacted: RedactedFields,
    instructions: Option<InstructionSource>,
    thread_time: Option<f64>,
}

impl PerfRecorder {
    /// Starts the configuration of a recorder.
    pub fn builder() -> PerfRecorderBuilder {
        PerfRecorderBuilder::new()
    }
}

impl PerfRecorderBuilder {
    pub(in crate::tracing::record) fn new() -> Self {
        let ring = Recorder::builder(ContentDescription::from_event_type::<PerfEvent>()).compact(true);
        Self {
            ring: ring.default_shifts(DEFAULT_SHIFTS.descriptor, DEFAULT_SHIFTS.payload),
            shards: None,
            all_at_build: false,
            tables_shift: DEFAULT_TABLES_SHIFT,
            limits: FieldLimits::default(),
            redacted: RedactedFields::default(),
            instructions: None,
            thread_time: None,
        }
    }

    /// Sets the place and size of the rings: `<name-or-path>`, `<name-or-path>:<size>` (`shop:256MiB`) or
    /// `<name-or-path>:<descriptor-shift>:<payload-shift>`.
    ///
    /// Each shard is a file. Shard 0 has the given name, and shard *n* has that name with `.n` at its end.
    /// [`RecorderBuilder::config`] explains in which directory the files are.
    ///
    /// A size is the memory that all rings together may take, see [`Self::memory`]. It is a number with a unit: `KiB`,
    /// `MiB`, `GiB`, or shorter `K`, `M`, `G`. All units are powers of 1,024. Without a size, the recorder takes at
    /// most 64 MiB, and at most half of the memory that is free: on the file system, in the machine, and in the
    /// control group.
    ///
    /// The shifts are exponents of 2, and are the size of one shard. A shard has room for 2^descriptor-shift events of
    /// 64 bytes (15 to 32) and for 2^payload-shift bytes of fields (21 to 40). It takes 2 MiB more. A span takes 4
    /// events. A field takes 4 bytes and the bytes of its value.
    pub fn config(mut self, config: impl AsRef<OsStr>) -> Self {
        self.ring = self.ring.config(config);
        self
    }

    /// Sets what [`Self::build`] does if another living process owns the name of the rings, see
    /// [`RecorderBuilder::numbered`].
    pub fn numbered(mut self, numbered: bool) -> Self {
        self.ring = self.ring.numbered(numbered);
        self
    }

    /// Makes rings in anonymous memory, without names. This is the default if [`Self::config`] is not called.
    pub fn anonymous(mut self) -> Self {
        self.ring = self.ring.anonymous();
        self
    }

    /// Sets the descriptor shift and the payload shift of each shard; [`Self::config`] explains them. They are used
    /// instead of a size in the configuration string, and replace what [`Self::memory`] has set.
    pub fn shifts(mut self, descriptor_shift: u32, payload_shift: u32) -> Self {
        self.ring = self.ring.shifts(descriptor_shift, payload_shift);
        self
    }

    /// Sets the memory that the recorder may take, in bytes: all shards together, also when all of them exist, with the
    /// tables. It is used instead of a size in the configuration string, and replaces what [`Self::shifts`] has set.
    /// Default: 64 MiB, or half of what is free if that is less.
    ///
    /// The recorder chooses how many shards it may make, and how large they are. It takes as many shards as
    /// [`Self::shards`] says, or by default two for each processor and two more, but at most 16. If they would have
    /// less than 10 MiB each (65,536 events), it takes fewer shards of 10 MiB: a program with many threads shares
    /// shards, and each shard remembers longer. If these would be fewer than four shards, it takes up to four of 6
    /// MiB. All shards have the same size, the largest that fits. A shard is made only when a thread needs it, so a
    /// program with few threads takes less memory.
    ///
    /// | memory | shards with 2 processors | shards with 8 processors |
    /// |---|---|---|
    /// | 16 MiB | 2 of 6 MiB (32,768 events) | the same |
    /// | 32 MiB | 4 of 6 MiB | the same |
    /// | 64 MiB (default) | 6 of 10 MiB (65,536 events) | the same |
    /// | 128 MiB | 6 of 18 MiB (131,072 events) | 12 of 10 MiB |
    /// | 256 MiB | 6 of 34 MiB (262,144 events) | 16 of 14 MiB (131,072 events) |
    ///
    /// With less than 10 MiB (6 MiB for a shard, 4 MiB for the tables), [`Self::build`] fails, and its error says which
    /// sizes are possible. [`Self::tables_shift`] sets another size of the tables.
    pub fn memory(mut self, bytes: u64) -> Self {
        self.ring = self.ring.memory(bytes);
        self
    }

    /// Sets how many shards the recorder may make, from 1 to 1,024. Default: two for each processor that this program
    /// may use, and two more, but at most 16, and fewer if [`Self::memory`] says so. If the number is set and no size
    /// is, each shard takes 10 MiB, or less if little memory is free.
    ///
    /// The recorder begins with one shard. It makes another one when a new thread records and every shard has a
    /// thread already. When the limit is reached, threads share shards. Such threads compete for cache lines, but
    /// never wait for each other.
    pub fn shards(mut self, limit: usize) -> Self {
        self.shards = Some(limit);
        self
    }

    /// Sets whether [`Self::build`] makes all shards, instead of one only. Default: false. With true, the rings take
    /// all of their memory from the beginning, and a thread that records for the first time opens no file. The tables of
    /// the present have room for 16,384 open spans, and do not grow. This is for programs that later enter a sandbox
    /// (seccomp), and for those that cannot wait some milliseconds in a new thread. A sandbox may also kill a program
    /// that asks for the times of its threads. So they are not measured, unless [`Self::thread_time`] says so.
    pub fn all_shards_at_build(mut self, all: bool) -> Self {
        self.all_at_build = all;
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
    /// longer text is cut and marked as cut. If `bytes` is 0, messages are not formatted. Default: 2,048.
    ///
    /// Below 1,024, the macros of [`log`](crate::log) record texts in place of arguments, at the price of `tracing`'s
    /// macros.
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

    /// Puts the rings into core files of this process. Default: false. See [`RecorderBuilder::in_core_files`].
    pub fn in_core_files(mut self, in_core_files: bool) -> Self {
        self.ring = self.ring.in_core_files(in_core_files);
        self
    }

    /// Makes the files stay, and puts the rings into core files, if `EVENTRING_KEEP` and `EVENTRING_CORE` in the
    /// environment say so. Otherwise does not change the settings.
    pub(in crate::tracing::record) fn keep_from_env(mut self) -> Self {
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

    /// Sets where the counts of executed instructions come from, which the events of spans carry. Default:
    /// [`InstructionSource::Plugin`]. The setting is one for the whole process. A later [`Self::build`] of any recorder
    /// may change it for threads that have not recorded yet.
    pub fn instructions(mut self, source: InstructionSource) -> Self {
        self.instructions = Some(source);
        self
    }

    /// Sets the share of a thread's time that measuring its times may cost: how long it ran, could have run, and slept.
    /// Default: 0.005, which is half a percent, or 0 with [`Self::all_shards_at_build`]. With 0, nothing is measured. With less than 0.005, fewer of the moments
    /// at which a thread leaves its processor are measured.
    ///
    /// Without the feature `thread-time`, nothing is measured. A thread that records to several recorders is measured
    /// for the first of them.
    pub fn thread_time(mut self, share: f64) -> Self {
        self.thread_time = Some(share);
        self
    }

    /// Makes shard 0 with its tables, and the other shards if [`Self::all_shards_at_build`] says so.
    ///
    /// # Errors
    /// The errors of [`RecorderBuilder::build`].
    pub fn build(mut self) -> Result<PerfRecorder, RecorderError> {
        let _section = LockedSection::enter();
        let shards = self.divide_memory()?;
        // All shards of a recorder carry the same random group number in their headers. The number shows a reader that
        // the shards belong together. Names, files and process ids would not show this, because a later recorder may
        // have the same.
        let group = RandomState::new().build_hasher().finish().max(1);
        let shard = Shard { index: 0, limit: shards as u64, group };
        let shard0 = self.ring.clone().context_shift(self.tables_shift).shard(shard).build()?;
        let geometry = shard0.geometry();
        let shifts = [geometry.descriptor_capacity(), geometry.payload_buf_bytes()].map(u64::trailing_zeros);
        let tables = Tables::new(&shard0);
        let default_share = if self.all_at_build { 0.0 } else { DEFAULT_SHARE };
        let thread_times = ThreadTimes::new(self.thread_time.unwrap_or(default_share), &shard0);
        if let Some(source) = self.instructions {
            source.choose();
        }
        // Without the tables, readers take the present from the rings.
        let mut now = shard0.path().and_then(|path| NowTable::create(path, group, self.ring.create_options()).ok());
        let shards = Shards::new(shard0, self.ring.shifts(shifts[0], shifts[1]), shard);
        if self.all_at_build {
            shards.make_all()?;
            now.iter_mut().for_each(NowTable::fix);
        }
        Ok(PerfRecorder::from_core(PerfCore::new(
            shards,
            tables,
            thread_times,
            now,
            self.limits.checked(),
            self.redacted,
        )))
    }

    /// Chooses the size of the shards, if the program has not set it by shifts, and returns how many there may be.
    fn divide_memory(&mut self) -> Result<usize, RecorderError> {
        let count = match self.shards {
            Some(shards) => ShardCount::Exactly(shards.clamp(1, SHARDS_MAX)),
            None => {
                let processors = std::thread::available_parallelism().map_or(1, std::num::NonZeroUsize::get);
                // The default is larger than the number of processors, because a thread that waits most of the time
                // holds a shard, too. With spare shards, two busy threads need not share a shard.
                ShardCount::AtMost((2 * processors + 2).min(DEFAULT_SHARDS_MAX))
            }
        };
        // `build` of shard 0 refuses a shift that is larger than this.
        let tables_bytes: u64 = 1 << self.tables_shift.min(MAX_CONTEXT_SHIFT);
        let bytes = match (self.ring.asked_size()?, count) {
            (Some(RingSize::Memory(bytes)), _) => bytes,
            (Some(_), ShardCount::Exactly(shards) | ShardCount::AtMost(shards)) => return Ok(shards),
            (None, _) => {
                let wanted = count.default_bytes() + tables_bytes.next_multiple_of(STEP_BYTES);
                let smallest = || MemoryPlan::possible_bytes(tables_bytes, count).first().copied().unwrap_or(wanted);
                self.ring.affordable_bytes(wanted, smallest)?
            }
        };
        let plan = MemoryPlan::within(bytes, tables_bytes, count).ok_or_else(|| {
            let possible = MemoryPlan::possible_bytes(tables_bytes, count);
            too_little_memory(&count.what(), bytes, &possible)
        })?;
        self.ring = self.ring.clone().shifts(plan.shifts.descriptor, plan.shifts.payload);
        Ok(plan.shards)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the shards that a recorder may make, and the shifts of shard 0.
    fn sizes(config: &str, set: fn(PerfRecorderBuilder) -> PerfRecorderBuilder) -> (usize, u32, u32) {
        let directory = tempfile::tempdir().unwrap();
        let builder = PerfRecorder::builder().config(directory.path().join(config)).prefault(false);
        let mut builder = set(builder);
        let shards = builder.divide_memory().unwrap();
        let geometry = builder.build().unwrap().core.shards.get(0).unwrap().geometry();
        (shards, geometry.descriptor_capacity().ilog2(), geometry.payload_buf_bytes().ilog2())
    }

    #[test]
    fn the_size_comes_from_the_program_or_from_the_configuration() {
        assert_eq!(sizes("shop:17:23", |builder| builder.shards(3)), (3, 17, 23));
        assert_eq!(sizes("shop:64MiB", |builder| builder.shards(3)), (3, 17, 23));
        assert_eq!(sizes("shop:64MiB", |builder| builder.shards(3).shifts(15, 21)), (3, 15, 21));
        assert_eq!(sizes("shop:17:23", |builder| builder.memory(22 << 20).shards(3)), (3, 15, 21));
        assert_eq!(sizes("shop", |builder| builder.shards(9)), (9, 16, 22));
        assert_eq!(sizes("shop::23", |builder| builder.shards(9)), (9, 16, 23));
        // Larger tables leave the default shards as they are.
        assert_eq!(
            sizes("shop", |builder| builder.tables_shift(13)),
            sizes("shop", |builder| builder.tables_shift(24))
        );
        let anonymous = PerfRecorder::builder().anonymous().prefault(false).shards(9).build().unwrap();
        assert_eq!(anonymous.shard_bytes(), 10 << 20);
    }

    #[test]
    fn too_little_memory_is_refused_with_the_sizes_that_are_possible() {
        let refused = |builder: PerfRecorderBuilder| builder.build().unwrap_err().to_string();
        insta::assert_snapshot!(
            [
                refused(PerfRecorder::builder().config("shop:8MiB")),
                refused(PerfRecorder::builder().config("shop:1k").tables_shift(16)),
                refused(PerfRecorder::builder().memory(64 << 20).shards(16)),
                refused(PerfRecorder::builder().config("shop:64Mb:3")),
                refused(PerfRecorder::builder().config("shop:64Mbit")),
            ]
            .join("\n"),
            @r#"
            the memory for the recorder is 8 MiB, expected at least 10 MiB; the next sizes are 12 MiB, 14 MiB, 16 MiB
            the memory for the recorder is 1 KiB, expected at least 8 MiB; the next sizes are 10 MiB, 12 MiB, 14 MiB
            the memory for a recorder with 16 shards is 64 MiB, expected at least 100 MiB; the next sizes are 132 MiB, 164 MiB, 228 MiB
            cannot use ring configuration: "shop:64Mb:3": a size in words (64Mb) stands alone, and no shift follows it; write <name-or-path>, <name-or-path>:<size> (`my-app:64MiB`) or <name-or-path>:<descriptor-shift>:<payload-shift>
            cannot use ring configuration: "shop:64Mbit": "64Mbit": expected a size like 500k, 100M or 2GiB; write <name-or-path>, <name-or-path>:<size> (`my-app:64MiB`) or <name-or-path>:<descriptor-shift>:<payload-shift>
            "#
        );
    }
}
