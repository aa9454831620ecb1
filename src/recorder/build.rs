//! `RecorderBuilder`: the configuration of a new recorder (sizes, path, clock), and the making of its ring.

use super::config::ContentDescription;
use super::core::Core;
use super::domain_switch::DomainSwitch;
use super::domains::{DomainChoice, DomainNames, DomainSettings};
use super::error::{RecorderError, RecorderErrorKind};
use super::handle::Recorder;
use super::header::{self, Shard};
use super::old_shards;
use crate::clock::{Clock, ClockKind};
use crate::layout::header::{CONTENT_TYPE_EXEC, MAGIC};
use crate::layout::limits::{
    COMPACT_DESCRIPTOR_SHIFTS, COMPACT_PAYLOAD_SHIFTS, DEFAULT_DESCRIPTOR_SHIFT, DEFAULT_PAYLOAD_SHIFT,
    DESCRIPTOR_SHIFTS, HEADER_SECTION_BYTES, MAX_CONTEXT_SHIFT, PAYLOAD_SHIFTS,
};
use crate::layout::{Geometry, block_table};
use crate::ring::memory::MappedMemory;
use crate::shm;
use std::ffi::{OsStr, OsString};
use std::ops::RangeInclusive;
use std::path::PathBuf;

/// Default shifts of an anonymous ring.
const ANONYMOUS_SHIFTS: (u32, u32) = (16, 27);

/// Name of the environment variable that keeps ring files when the process exits (`EVENTRING_KEEP=1`). It is for
/// programs that end before anybody has read their rings. An empty value, `0`, `no`, `false` and `off`, in upper or
/// lower case, count as not set. Every other value keeps the files.
///
/// Functions that make a recorder for the whole process obey this variable: `EXEC.try_init`, `eventring::tracing::init`
/// and similar functions. Functions that get a builder, such as `try_init_with`, ignore it. [`RecorderBuilder::build`]
/// ignores it, too.
pub const KEEP_VARIABLE: &str = "EVENTRING_KEEP";

/// Configuration of a new recorder. [`Recorder::builder`] makes the configuration; [`Self::build`] makes the ring.
#[derive(Clone, Debug)]
#[must_use = "nothing happens before `build`"]
pub struct RecorderBuilder {
    description: ContentDescription,
    config: Option<OsString>,
    /// Path of the ring file if the ring is a shard: a file in the directory of shard 0. This path replaces the path
    /// in `config`.
    shard_path: Option<PathBuf>,
    default_shifts: Option<(u32, u32)>,
    descriptor_shift: Option<u32>,
    payload_shift: Option<u32>,
    compact: bool,
    context_shift: Option<u32>,
    block_table: bool,
    prefault: bool,
    clock_kind: Option<ClockKind>,
    domains: Option<DomainSettings>,
    shard: Shard,
    options: shm::CreateOptions,
}

impl RecorderBuilder {
    pub(super) fn new(description: ContentDescription) -> Self {
        Self {
            description,
            config: None,
            shard_path: None,
            default_shifts: None,
            descriptor_shift: None,
            payload_shift: None,
            compact: false,
            context_shift: None,
            block_table: false,
            prefault: true,
            clock_kind: None,
            domains: None,
            shard: Shard::default(),
            options: shm::CreateOptions { replace_prefix: &MAGIC, ..shm::CreateOptions::default() },
        }
    }

    /// Sets the name or path of the ring, and its size, as `<name-or-path>[:<descriptor-shift>:<payload-shift>]`.
    ///
    /// A name without `/` is a file in the ring directory. The environment variable `EVENTRING_DIR` names this
    /// directory. Without the variable, the ring directory is `event-rings/` on the hugetlbfs mount, or
    /// `/dev/shm/event-rings` if there are no huge pages. A name with a `/` is a path, used as written.
    ///
    /// The ring has 2^descriptor-shift descriptors of 64 bytes (shift 16 to 32, default 21). Its payload buffer has
    /// 2^payload-shift bytes (shift 27 to 40, default 29). With both defaults the file has 642 MiB. `docs/CLI.md`,
    /// "Sizes of rings", has the limits of all kinds of rings. Shifts that are set with [`Self::shifts`] override the
    /// shifts of the configuration string.
    pub fn config(mut self, config: impl AsRef<OsStr>) -> Self {
        self.config = Some(config.as_ref().to_os_string());
        self
    }

    /// Makes a private ring in anonymous memory (a memfd). Other processes can open the ring only if they get its file
    /// descriptor. This is the default. The default shifts of such a ring are 16 (descriptors) and 27 (payload).
    pub fn anonymous(mut self) -> Self {
        self.config = None;
        self
    }

    /// Sets both shifts; see [`Self::config`].
    pub fn shifts(mut self, descriptor_shift: u32, payload_shift: u32) -> Self {
        (self.descriptor_shift, self.payload_shift) = (Some(descriptor_shift), Some(payload_shift));
        self
    }

    /// Sets whether the ring may be smaller than the original C implementation allows. If so, descriptor shifts from 15
    /// and payload shifts from 21 are allowed. Readers of the original C implementation may refuse such a small ring.
    pub fn compact(mut self, compact: bool) -> Self {
        self.compact = compact;
        self
    }

    /// Adds a context area of 2^shift bytes (shift 12 to 40). The context area is for tables that readers need.
    /// Default: none.
    pub fn context_shift(mut self, shift: u32) -> Self {
        self.context_shift = Some(shift);
        self
    }

    /// Sets whether the ring keeps the start records of the last 4,096 blocks, in a table at the beginning of the
    /// context area. With it, a reader that comes after a block's BLOCK_START was overwritten still learns to which
    /// block an event belongs ([`Reader::block_of`](crate::reader::Reader::block_of)). The context area then has 4 MiB,
    /// or more if [`Self::context_shift`] says so; its first 2,396,160 bytes are the table's. Only a ring of execution
    /// events (content type 2) can have the table. Default: false.
    pub fn block_table(mut self, block_table: bool) -> Self {
        self.block_table = block_table;
        self
    }

    /// Sets whether `build` touches all memory of the ring. Default: true. With false, the first event on each page
    /// takes longer, because the kernel must map the page. An event of 82 bytes then takes 3 times as long on average,
    /// an event of 4 KiB 14 times as long.
    pub fn prefault(mut self, prefault: bool) -> Self {
        self.prefault = prefault;
        self
    }

    /// Sets whether the file stays when the recorder ends: when its last handle is dropped, or when the process exits.
    /// Default: false. After a crash the file always stays. A crash is one of these: a signal or an abort kills the
    /// process; a panic drops the last handle; `main` panics (this is noticed only with glibc).
    pub fn keep(mut self, keep: bool) -> Self {
        self.options.keep = keep;
        self
    }

    /// Makes the file stay if the environment variable [`KEEP_VARIABLE`] says so. Otherwise this function changes
    /// nothing.
    pub(crate) fn keep_from_env(self) -> Self {
        let value = std::env::var_os(KEEP_VARIABLE).unwrap_or_default();
        let says_no = ["", "0", "no", "false", "off"].iter().any(|no| value.eq_ignore_ascii_case(no));
        if says_no { self } else { self.keep(true) }
    }

    /// Sets the permission bits of the file. Default: 0640 (the owner may write, the group may read).
    pub fn file_mode(mut self, mode: u32) -> Self {
        self.options.file_mode = mode;
        self
    }

    /// Sets the permission bits of the ring directory, if `build` has to make this directory. Default: 0750. If the
    /// group or other users may write to the directory, it also gets the sticky bit.
    pub fn directory_mode(mut self, mode: u32) -> Self {
        self.options.directory_mode = mode;
        self
    }

    /// Sets the clock. Default: the processor's tick counter if it is reliable, otherwise CLOCK_REALTIME.
    pub fn clock(mut self, kind: ClockKind) -> Self {
        self.clock_kind = Some(kind);
        self
    }

    /// Sets which domains of the events are recorded: names with commas between them. Each name switches its domain
    /// on. `all` switches all domains on, and `none` takes back what stands before it. `!NAME` forbids a domain: it
    /// stays off, whatever the program and clients of the process do. If the text switches nothing on and does not say
    /// `none`, all domains are on. Default: all domains are on.
    pub fn domains(mut self, domains: impl AsRef<OsStr>) -> Self {
        self.domains = Some(DomainSettings::new(domains.as_ref()));
        self
    }

    /// Sets which domains are recorded, if the environment variable
    /// [`DOMAINS_VARIABLE`](super::DOMAINS_VARIABLE) says so. Otherwise this function changes nothing.
    pub(crate) fn domains_from_env(mut self) -> Self {
        self.domains = DomainSettings::from_env().or(self.domains);
        self
    }

    /// Makes the ring a shard, with this position in its recorder.
    #[cfg_attr(not(feature = "tracing"), allow(dead_code, reason = "the perf recorder's business"))]
    pub(crate) fn shard(mut self, shard: Shard) -> Self {
        self.shard = shard;
        self
    }

    /// Sets the path of the ring file. This path replaces the path in the configuration string.
    #[cfg_attr(not(feature = "tracing"), allow(dead_code, reason = "the perf recorder's business"))]
    pub(crate) fn at(mut self, path: PathBuf) -> Self {
        self.shard_path = Some(path);
        self
    }

    /// Sets the shifts that apply if neither [`Self::shifts`] nor the configuration string gives them.
    #[cfg_attr(not(feature = "tracing"), allow(dead_code, reason = "the perf recorder's business"))]
    pub(crate) fn default_shifts(mut self, descriptor_shift: u32, payload_shift: u32) -> Self {
        self.default_shifts = Some((descriptor_shift, payload_shift));
        self
    }

    /// Makes the ring and opens it for recording. No reader ever sees an unfinished ring: the file gets its name last.
    ///
    /// # Errors
    /// Returns an error if the configuration is malformed, another process or recorder owns the ring, a permission is
    /// missing, or there is too little memory. (In the last case, the message names the memory pool and says how to
    /// enlarge it.)
    pub fn build(self) -> Result<Recorder, RecorderError> {
        if self.description.content_type() == 0 {
            let message = "the content type is 0, which no ring may have; expected 1 to 3 for published events, or a number of your own from 256";
            return Err(RecorderError::new(RecorderErrorKind::BadConfig, message));
        }
        if self.block_table && self.description.content_type() != CONTENT_TYPE_EXEC {
            let message = format!(
                "a block table was asked for, and the content type is {}; expected {CONTENT_TYPE_EXEC}, because only execution \
                 events belong to blocks; leave out `block_table`",
                self.description.content_type()
            );
            return Err(RecorderError::new(RecorderErrorKind::BadConfig, message));
        }
        let switch = self.domain_switch()?;
        let fork_guard = shm::ForkGuard::new().map_err(RecorderError::shm)?;
        let clock = Clock::shared(self.clock_kind.unwrap_or(ClockKind::TickCounter));
        let (name, (descriptor_shift, payload_shift)) = self.name_and_shifts()?;
        self.check_shifts(descriptor_shift, payload_shift)?;
        let geometry = self.geometry((descriptor_shift, payload_shift))?;
        let (file, memory) = match name {
            None => {
                let options = shm::MemfdOptions { file_mode: self.options.file_mode, ..shm::MemfdOptions::default() };
                shm::create_memfd("eventring", geometry.file_bytes(), &options, |file| {
                    self.initialise(file, geometry, clock)
                })?
            }
            Some(name) => {
                let place = shm::RingDirectories::from_environment().location_for_writing(&name);
                let initialise = |file: &shm::UnpublishedFile<'_>| self.initialise(file, geometry, clock);
                let made = shm::create(&place, geometry.file_bytes(), &self.options, initialise)?;
                if self.shard.index == 0 {
                    old_shards::remove(&place.path);
                }
                made
            }
        };
        #[cfg(all(feature = "server", target_os = "linux", not(eventring_unsupported)))]
        let export = super::served::serve(&file, &self.description, self.shard);
        #[cfg_attr(
            not(all(feature = "server", target_os = "linux", not(eventring_unsupported))),
            allow(unused_mut, reason = "only a server changes it")
        )]
        let mut core = Core::new(memory, file, fork_guard, clock, self.description, switch);
        #[cfg(all(feature = "server", target_os = "linux", not(eventring_unsupported)))]
        {
            core.export = export;
        }
        let recorder = Recorder::from_core(core);
        // A shard of a perf recorder has no domains that could be switched.
        #[cfg(all(feature = "server", target_os = "linux", not(eventring_unsupported)))]
        if self.shard.limit == 0 {
            super::served::make_domains_known(&recorder);
        }
        Ok(recorder)
    }

    /// Returns the switch of the new recorder. The recorder is on.
    fn domain_switch(&self) -> Result<DomainSwitch, RecorderError> {
        let names = DomainNames::of(&self.description);
        let choice = match &self.domains {
            Some(settings) => settings.choose(&names),
            None => Ok(DomainChoice { configured: names.all(), forbidden: 0 }),
        };
        let choice = choice.map_err(|problem| RecorderError::new(RecorderErrorKind::BadConfig, problem))?;
        Ok(DomainSwitch::new(names, choice))
    }

    /// Returns the ring's name and both shifts. The name is `None` if the ring is anonymous. The caller must still
    /// check that the shifts are within the limits.
    fn name_and_shifts(&self) -> Result<(Option<shm::RingName>, (u32, u32)), RecorderError> {
        let or = |(descriptor, payload)| {
            (self.descriptor_shift.unwrap_or(descriptor), self.payload_shift.unwrap_or(payload))
        };
        let named = self.default_shifts.unwrap_or((DEFAULT_DESCRIPTOR_SHIFT, DEFAULT_PAYLOAD_SHIFT));
        if let Some(path) = &self.shard_path {
            return Ok((Some(shm::RingName::Path(path.clone())), or(named)));
        }
        let Some(config) = &self.config else {
            return Ok((None, or(self.default_shifts.unwrap_or(ANONYMOUS_SHIFTS))));
        };
        let parsed = shm::RingConfig::parse(config, &self.limits(or(named))).map_err(RecorderError::shm)?;
        Ok((Some(parsed.name), or((parsed.descriptor_shift.into(), parsed.payload_shift.into()))))
    }

    /// Returns the limits of the shifts, and their defaults.
    fn limits(&self, (descriptor, payload): (u32, u32)) -> shm::ConfigLimits {
        let (descriptors, payloads) = if self.compact {
            (COMPACT_DESCRIPTOR_SHIFTS, COMPACT_PAYLOAD_SHIFTS)
        } else {
            (DESCRIPTOR_SHIFTS, PAYLOAD_SHIFTS)
        };
        shm::ConfigLimits { descriptor: limits(&descriptors, descriptor), payload: limits(&payloads, payload) }
    }

    fn check_shifts(&self, descriptor: u32, payload: u32) -> Result<(), RecorderError> {
        let limits = self.limits((descriptor, payload));
        let is_in = |shift, limits: shm::ShiftLimits| (u32::from(limits.min)..=u32::from(limits.max)).contains(&shift);
        if is_in(descriptor, limits.descriptor) && is_in(payload, limits.payload) {
            return Ok(());
        }
        let smaller = if self.compact { "" } else { "; `compact(true)` allows smaller rings" };
        Err(RecorderError::new(
            RecorderErrorKind::BadConfig,
            format_args!(
                "the descriptor shift is {descriptor} and the payload shift {payload}, expected {limits}{smaller}"
            ),
        ))
    }

    fn geometry(&self, (descriptor_shift, payload_shift): (u32, u32)) -> Result<Geometry, RecorderError> {
        self.context_shift.map_or(Ok(()), check_context_shift)?;
        let least = self.block_table.then_some(block_table::CONTEXT_SHIFT);
        let context_bytes = self.context_shift.max(least).map_or(0, |shift| 1 << shift);
        Geometry::new(1 << descriptor_shift, 1 << payload_shift, context_bytes)
            .map_err(|error| RecorderError::new(RecorderErrorKind::BadConfig, error))
    }

    /// Maps the new file and writes the header.
    fn initialise(
        &self,
        file: &shm::UnpublishedFile<'_>,
        geometry: Geometry,
        clock: &'static Clock,
    ) -> Result<MappedMemory, RecorderError> {
        let sections = shm::Sections {
            header_bytes: HEADER_SECTION_BYTES,
            descriptor_bytes: geometry.descriptor_section_bytes(),
            payload_bytes: geometry.payload_buf_bytes(),
            context_bytes: geometry.context_area_bytes(),
        };
        let options = shm::MapOptions { prefault: self.prefault, ..shm::MapOptions::writer() };
        let mapping = shm::Mapping::map(file, sections, options).map_err(RecorderError::shm)?;
        let memory = MappedMemory::new(mapping, geometry, true).ok_or_else(|| {
            RecorderError::new(RecorderErrorKind::BadConfig, "the ring's sections do not fit its pages")
        })?;
        if self.block_table {
            crate::ring::block_table::make(&memory);
        }
        header::write(&memory, &self.description, clock, self.shard, file.is_locked_for_writing());
        Ok(memory)
    }
}

fn limits(range: &RangeInclusive<u32>, default: u32) -> shm::ShiftLimits {
    // Shifts are below 64, so the casts lose nothing.
    shm::ShiftLimits { min: *range.start() as u8, max: *range.end() as u8, default: default as u8 }
}

fn check_context_shift(shift: u32) -> Result<(), RecorderError> {
    const ALLOWED: RangeInclusive<u32> = 12..=MAX_CONTEXT_SHIFT;
    if ALLOWED.contains(&shift) {
        return Ok(());
    }
    Err(RecorderError::new(
        RecorderErrorKind::BadConfig,
        format_args!("the context shift is {shift}, expected {} to {}", ALLOWED.start(), ALLOWED.end()),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn content_type_0_is_refused() {
        let error = Recorder::builder(ContentDescription::new(0, "NOTHING")).anonymous().build().unwrap_err();
        assert_eq!(error.kind(), RecorderErrorKind::BadConfig);
        assert!(error.to_string().contains("content type is 0"), "{error}");
    }

    #[test]
    fn shifts_out_of_range_are_refused_with_both_limits_in_one_message() {
        let refused = |builder: RecorderBuilder| {
            let error = builder.build().unwrap_err();
            assert_eq!(error.kind(), RecorderErrorKind::BadConfig);
            error.to_string()
        };
        let builder = || Recorder::builder(ContentDescription::new(300, "SHOP"));
        insta::assert_snapshot!(
            [
                refused(builder().shifts(15, 41)),
                refused(builder().compact(true).shifts(14, 30)),
                refused(builder().config("shop:15:21")),
                refused(builder().config("shop:14:20").compact(true)),
            ]
            .join("\n"),
            @r#"
            the descriptor shift is 15 and the payload shift 41, expected a descriptor shift from 16 to 32 (2^shift events) and a payload shift from 27 to 40 (2^shift bytes); `compact(true)` allows smaller rings
            the descriptor shift is 14 and the payload shift 30, expected a descriptor shift from 15 to 32 (2^shift events) and a payload shift from 21 to 40 (2^shift bytes)
            cannot use ring configuration: "shop:15:21": descriptor shift "15" and payload shift "21", expected a descriptor shift from 16 to 32 (2^shift events) and a payload shift from 27 to 40 (2^shift bytes); write <name-or-path>[:<descriptor-shift>:<payload-shift>]
            cannot use ring configuration: "shop:14:20": descriptor shift "14" and payload shift "20", expected a descriptor shift from 15 to 32 (2^shift events) and a payload shift from 21 to 40 (2^shift bytes); write <name-or-path>[:<descriptor-shift>:<payload-shift>]
            "#
        );
    }
}
