//! `RecorderBuilder`: the configuration of a new recorder (sizes, path, clock), and the making of its ring.

mod instance;
mod sizes;

use super::config::ContentDescription;
use super::core::Core;
use super::domain_switch::DomainSwitch;
use super::domains::{DomainChoice, DomainNames, DomainSettings};
use super::error::{RecorderError, RecorderErrorKind};
use super::handle::Recorder;
use super::header::{self, Shard};
use crate::clock::{Clock, ClockKind};
use crate::layout::header::MAGIC;
use crate::layout::limits::{HEADER_SECTION_BYTES, MAX_CONTEXT_SHIFT};
use crate::layout::{Geometry, start_table};
use crate::ring::memory::MappedMemory;
use crate::shm::{self, RingSize};
use crate::sync::locked_section::LockedSection;
use std::ffi::{OsStr, OsString};
use std::ops::RangeInclusive;
use std::path::PathBuf;

pub(crate) use sizes::too_little_memory;

/// Name of the environment variable that keeps ring files when the process exits (`EVENTRING_KEEP=1`). It is for
/// programs that end before anybody has read their rings. An empty value, `0`, `no`, `false` and `off`, in upper or
/// lower case, count as not set. Every other value keeps the files.
///
/// Functions that make a recorder for the whole process obey this variable: `EXEC.try_init`, `eventring::tracing::init`
/// and similar functions. Functions that get a builder, such as `try_init_with`, ignore it. [`RecorderBuilder::build`]
/// ignores it, too.
pub const KEEP_VARIABLE: &str = "EVENTRING_KEEP";

/// Name of the environment variable that puts rings with a name into core files (`EVENTRING_CORE=1`), as
/// [`RecorderBuilder::in_core_files`] does. The functions that obey [`KEEP_VARIABLE`] obey this variable, and the same
/// values count as not set.
pub const CORE_VARIABLE: &str = "EVENTRING_CORE";

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
    size: Option<RingSize>,
    /// The number of bytes that are free, if the ring is to be smaller than by default because of that; otherwise 0.
    reduced_free_bytes: u64,
    compact: bool,
    context_shift: Option<u32>,
    /// True if the ring is to keep start records.
    pub(crate) start_table: bool,
    prefault: bool,
    clock_kind: Option<ClockKind>,
    domains: Option<DomainSettings>,
    shard: Shard,
    served_name: Option<String>,
    is_numbered: bool,
    is_in_core_files: bool,
    options: shm::CreateOptions,
}

impl Recorder {
    /// Starts the configuration of a recorder. `description` describes the events that the recorder will record.
    pub fn builder(description: ContentDescription) -> RecorderBuilder {
        RecorderBuilder::new(description)
    }
}

impl RecorderBuilder {
    pub(super) fn new(description: ContentDescription) -> Self {
        Self {
            description,
            config: None,
            shard_path: None,
            default_shifts: None,
            size: None,
            reduced_free_bytes: 0,
            compact: false,
            context_shift: None,
            start_table: false,
            prefault: true,
            clock_kind: None,
            domains: None,
            shard: Shard::default(),
            served_name: None,
            is_numbered: false,
            is_in_core_files: false,
            options: shm::CreateOptions { replace_prefix: &MAGIC, ..shm::CreateOptions::default() },
        }
    }

    /// Sets the name or path of the ring, and its size: `<name-or-path>`, `<name-or-path>:<size>` (`shop:64MiB`) or
    /// `<name-or-path>:<descriptor-shift>:<payload-shift>`.
    ///
    /// A name without `/` is a file in the ring directory. The environment variable `EVENTRING_DIR` names this
    /// directory. Without the variable, the ring directory is `event-rings/` on the hugetlbfs mount, or
    /// `/dev/shm/event-rings` if there are no huge pages. A name with a `/` is a path, used as written.
    ///
    /// In the name, `{pid}` stands for the id of the process that makes the ring, and `{exe}` for the name of its
    /// program's file: `shop-{pid}`.
    ///
    /// A size is the memory that the ring may take, see [`Self::memory`]. It is a number with a unit: `KiB`, `MiB`,
    /// `GiB`, or shorter `K`, `M`, `G`. All units are powers of 1,024.
    ///
    /// With shifts, the ring has 2^descriptor-shift descriptors of 64 bytes, and its payload buffer has
    /// 2^payload-shift bytes. The shifts of a program's own events may be 15 to 32 and 21 to 40. Without a size, such a
    /// ring has the shifts 19 and 26, and takes 98 MiB. A ring of published events (content types below 256) may have
    /// the shifts 16 to 32 and 27 to 40; without a size it has 19 and 27, and takes 162 MiB. A
    /// ring without a size is smaller if that is more than half of the memory that is free: on the file system, in the
    /// machine, and in the control group. `docs/CLI.md`, "Sizes of
    /// rings", has the limits and defaults of all kinds of rings.
    ///
    /// A size that is set with [`Self::memory`] or [`Self::shifts`] overrides the size of the configuration string.
    pub fn config(mut self, config: impl AsRef<OsStr>) -> Self {
        self.config = Some(config.as_ref().to_os_string());
        self
    }

    /// Sets what `build` does if another living process owns the ring's name. If `numbered` is true, the ring gets the
    /// first name of `shop~2`, `shop~3` … that no living process owns. If it is false, `build` fails. Default: false.
    /// The functions that initialise a global recorder from a configuration string set it to true.
    pub fn numbered(mut self, numbered: bool) -> Self {
        self.is_numbered = numbered;
        self
    }

    /// Makes a private ring in anonymous memory (a memfd). Other processes can open the ring only if they get its file
    /// descriptor. This is the default. The default shifts of such a ring are 16 (descriptors) and 27 (payload).
    pub fn anonymous(mut self) -> Self {
        self.config = None;
        self
    }

    /// Sets both shifts; see [`Self::config`]. This replaces what [`Self::memory`] has set.
    pub fn shifts(mut self, descriptor_shift: u32, payload_shift: u32) -> Self {
        self.size = Some(RingSize::Shifts { descriptor: descriptor_shift, payload: payload_shift });
        self
    }

    /// Sets the memory that the ring may take, in bytes. This replaces what [`Self::shifts`] has set.
    ///
    /// The ring gets the largest sections that fit: header section (2 MiB), descriptors, payload buffer and context
    /// area together take at most `bytes`. Because each section is a power of two, they may take less; the ring uses
    /// more than half of the memory. If it is possible, the ring has 32 to 128 bytes of payload buffer for each
    /// descriptor. The smallest ring takes 6 MiB. With less, [`Self::build`] fails, and its error says which sizes are
    /// possible.
    ///
    /// A ring of published events (content types below 256) that takes less than 134 MiB is compact, see
    /// [`Self::compact`].
    ///
    /// ```
    /// # use eventring::recorder::{ContentDescription, Recorder};
    /// let recorder = Recorder::builder(ContentDescription::new(300, "SHOP")).memory(16 << 20).build()?;
    /// assert_eq!(recorder.geometry().file_bytes(), 14 << 20);
    /// # Ok::<(), eventring::recorder::RecorderError>(())
    /// ```
    pub fn memory(mut self, bytes: u64) -> Self {
        self.size = Some(RingSize::Memory(bytes));
        self
    }

    /// Sets whether a ring of published events (content types below 256) may be smaller than the original C
    /// implementation allows. If so, descriptor shifts from 15 and payload shifts from 21 are allowed. Readers of the
    /// original C implementation may refuse such a small ring. They do not know a program's own events, so the rings of
    /// these may always be as small.
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

    /// Puts the ring into core files of this process, so that `eventring core` finds it there. Default: false. A ring
    /// in anonymous memory, or whose file was removed, is in a core file by default; a ring with a name is not.
    ///
    /// The setting is one of the process, and stays: `build` sets the bits 3 and 6 of `/proc/self/coredump_filter`. So
    /// core files also have all other shared mappings of files, and shared huge pages. If the system refuses it, the
    /// ring is made all the same; `eventring check` tells.
    pub fn in_core_files(mut self, in_core_files: bool) -> Self {
        self.is_in_core_files = in_core_files;
        self
    }

    /// Makes the file stay, and puts the ring into core files, if the environment variables [`KEEP_VARIABLE`] and
    /// [`CORE_VARIABLE`] say so. Otherwise this function changes nothing.
    pub(crate) fn keep_from_env(mut self) -> Self {
        self.options.keep |= says_yes(KEEP_VARIABLE);
        self.is_in_core_files |= says_yes(CORE_VARIABLE);
        self
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
    pub(crate) fn shard(mut self, shard: Shard) -> Self {
        self.shard = shard;
        self
    }

    /// Sets the name by which a server of this process hands out the ring. Default: the name of its file, or that of
    /// the content type.
    #[doc(hidden)]
    pub fn served_name(mut self, name: impl Into<String>) -> Self {
        self.served_name = Some(name.into());
        self
    }

    /// Returns how the ring's file is to be made.
    pub(crate) fn create_options(&self) -> &shm::CreateOptions {
        &self.options
    }

    /// Sets the path of the ring file. This path replaces the path in the configuration string.
    pub(crate) fn at(mut self, path: PathBuf) -> Self {
        self.shard_path = Some(path);
        self
    }

    /// Sets the shifts that apply if neither [`Self::shifts`] nor the configuration string gives them.
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
    pub fn build(mut self) -> Result<Recorder, RecorderError> {
        let _section = LockedSection::enter();
        if self.description.content_type() == 0 {
            let message = "the content type is 0, which no ring may have; expected 1 to 3 for published events, or a number of your own from 256";
            return Err(RecorderError::new(RecorderErrorKind::BadConfig, message));
        }
        if self.start_table && self.description.content_type() != start_table::CONTENT_TYPE {
            let message = format!(
                "a block table was asked for, and the content type is {}; expected {}, because only execution \
                 events belong to blocks; leave out `block_table`",
                self.description.content_type(),
                start_table::CONTENT_TYPE
            );
            return Err(RecorderError::new(RecorderErrorKind::BadConfig, message));
        }
        let switch = self.domain_switch()?;
        let fork_guard = shm::ForkGuard::new().map_err(RecorderError::shm)?;
        let clock = Clock::shared(self.clock_kind.unwrap_or(ClockKind::TickCounter));
        let (name, (descriptor_shift, payload_shift)) = self.name_and_shifts()?;
        let geometry = self.geometry((descriptor_shift, payload_shift))?;
        let (file, memory) = match name {
            None => {
                let options = shm::MemfdOptions { file_mode: self.options.file_mode, ..shm::MemfdOptions::default() };
                shm::create_memfd("eventring", geometry.file_bytes(), &options, |file| {
                    self.initialise(file, geometry, clock)
                })?
            }
            Some(name) => self.make_file(&name, geometry, clock)?,
        };
        if self.is_in_core_files {
            shm::put_named_files_into_cores();
        }
        let export = super::served::serve(&file, &self.description, self.shard, self.served_name.as_deref());
        let mut core = Core::new(memory, file, fork_guard, clock, self.description, switch);
        core.export = export;
        let recorder = Recorder::from_core(core);
        // A shard of a perf recorder has no domains that could be switched.
        #[cfg(all(feature = "server", target_os = "linux", not(eventring_unsupported)))]
        if self.shard.limit == 0 {
            super::steered_domains::make_known(&recorder);
        }
        Ok(recorder)
    }

    /// Returns the switch of the new recorder. The recorder is on.
    fn domain_switch(&self) -> Result<DomainSwitch, RecorderError> {
        let names = DomainNames::new(&self.description);
        let choice = match &self.domains {
            Some(settings) => settings.choose(&names),
            None => Ok(DomainChoice { configured: names.all(), forbidden: 0 }),
        };
        let choice = choice.map_err(|problem| RecorderError::new(RecorderErrorKind::BadConfig, problem))?;
        Ok(DomainSwitch::new(names, choice))
    }

    fn geometry(&self, (descriptor_shift, payload_shift): (u32, u32)) -> Result<Geometry, RecorderError> {
        Geometry::new(1 << descriptor_shift, 1 << payload_shift, self.context_bytes()?)
            .map_err(|error| RecorderError::new(RecorderErrorKind::BadConfig, error))
    }

    /// Returns the size of the context area.
    fn context_bytes(&self) -> Result<u64, RecorderError> {
        self.context_shift.map_or(Ok(()), check_context_shift)?;
        let least = self.start_table.then_some(start_table::CONTEXT_SHIFT);
        Ok(self.context_shift.max(least).map_or(0, |shift| 1 << shift))
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
        if self.start_table {
            crate::ring::start_table::make(&memory);
        }
        let is_locked = file.is_locked_for_writing();
        header::write(&memory, &self.description, clock, self.shard, self.reduced_free_bytes, is_locked);
        Ok(memory)
    }
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

/// Returns true if the environment variable is set to something else than a no.
fn says_yes(variable: &str) -> bool {
    let value = std::env::var_os(variable).unwrap_or_default();
    !["", "0", "no", "false", "off"].iter().any(|no| value.eq_ignore_ascii_case(no))
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
}
