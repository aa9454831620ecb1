//! One ring file in the address space: header, descriptors, the payload buffer twice, context.
//!
//! ```text
//! guard │ header │ descriptors │ payload │ payload again │ context │ guard
//!       └ file offset 0 ───────────────┘ └ same pages ─┘
//! ```
//!
//! Because the payload buffer's pages stand twice behind one another, a payload that runs over the end of the buffer is contiguous in memory. The
//! whole range is first reserved without access rights, then the pieces are mapped over the reservation: no other thread's mapping can get between.

use std::ffi::c_void;
use std::ops::Range;
use std::os::fd::{AsFd, BorrowedFd};
use std::ptr::{self, NonNull};

use rustix::fs::fstat;
use rustix::io::Errno;
use rustix::mm::{Advice, MapFlags, ProtFlags, madvise, mmap, mmap_anonymous, munmap};

use super::answers::LostPages;
use super::error::{ShmError, ShmErrorKind};
use super::extents::{Reached, SparseFile, too_many_parts};
use super::options::{Access, MapOptions};
use super::page_size::{HUGE_PAGE_BYTES, has_memory_pages, page_bytes};
use super::plan::OPERATION;
use super::plan::Plan;
use super::sections::Sections;
use super::sigbus;

/// A ring file in memory. Unmapped on drop; the file itself is not touched.
///
/// It hands out raw pointers only: other processes write the same pages, so that no Rust reference to them may exist. All pointers are valid for
/// loads (and stores, with [`Access::ReadWrite`]) over the stated lengths for as long as the mapping lives.
#[derive(Debug)]
pub struct Mapping {
    reservation: NonNull<u8>,
    reserved_bytes: usize,
    base: NonNull<u8>,
    plan: Plan,
    sections: Sections,
    page_bytes: usize,
    access: Access,
    /// Where only some of the file is mapped.
    sparse: Option<SparseFile>,
    protection: Option<sigbus::Registration>,
}

// SAFETY: a mapping is owned memory of the process, not of a thread; unmapping it from another thread than the one that mapped it is allowed.
unsafe impl Send for Mapping {}
// SAFETY: the methods that take `&self` only hand out copies of addresses and plain sizes fixed at construction; what is done through the raw
// pointers is the unsafe business of the caller, who must use atomic or volatile accesses because other processes share the memory anyway.
unsafe impl Sync for Mapping {}

impl Mapping {
    /// Maps the file behind `file`.
    ///
    /// The file must reach to the end of its sections, up to the page it ends in: a file that is some bytes short within its last page maps fine
    /// and reads as zeros there.
    ///
    /// # Errors
    /// [`BadSections`](ShmErrorKind::BadSections) if the sizes overflow or do not fit the file system's page size,
    /// [`Truncated`](ShmErrorKind::Truncated) if the file is too short, [`PermissionDenied`](ShmErrorKind::PermissionDenied) if the descriptor does
    /// not allow the access, [`NoSpace`](ShmErrorKind::NoSpace) if there is no address space or, when prefaulting, no memory behind a page.
    pub fn map(file: impl AsFd, sections: Sections, options: MapOptions) -> Result<Self, ShmError> {
        let file = file.as_fd();
        Self::map_file(file, sections, options).map_err(|error| name_file(error, file))
    }

    fn map_file(file: BorrowedFd<'_>, sections: Sections, options: MapOptions) -> Result<Self, ShmError> {
        let page = page_bytes(file).map_err(|errno| ShmError::from_errno(OPERATION, errno))?;
        let plan = Plan::new(&sections, page)?;
        require_length(file, &sections, page)?;

        let page = usize::try_from(page).map_err(|_| too_large())?;
        let alignment = page.max(HUGE_PAGE_BYTES);
        // One alignment unit to find an aligned start, a page in front and what is left behind as guards.
        let reserved_bytes =
            alignment.checked_mul(2).and_then(|slack| slack.checked_add(plan.end)).ok_or_else(too_large)?;
        // SAFETY: a fresh anonymous mapping at an address of the kernel's choice overlaps nothing.
        let reservation = unsafe {
            mmap_anonymous(ptr::null_mut(), reserved_bytes, ProtFlags::empty(), MapFlags::PRIVATE | MapFlags::NORESERVE)
        }
        .map_err(no_address_space)?;
        let reservation = NonNull::new(reservation.cast::<u8>()).ok_or_else(too_large)?;
        let skipped = (reservation.addr().get() + page).next_multiple_of(alignment) - reservation.addr().get();
        // SAFETY: `skipped` < 2 * alignment, so that `skipped + plan.end` lies within the reservation.
        let base = unsafe { reservation.add(skipped) };
        // From here on dropping the value unmaps the reservation with everything mapped over it.
        let mut mapping = Self {
            reservation,
            reserved_bytes,
            base,
            plan,
            sections,
            page_bytes: page,
            access: options.access,
            sparse: None,
            protection: None,
        };
        let has_all = options.map_holes || options.prefault || options.access == Access::ReadWrite;
        match if has_all { None } else { SparseFile::of(file, page as u64)? } {
            None => mapping.place_part(file, 0..u64::MAX)?,
            Some(sparse) => {
                mapping.place_zeros()?;
                mapping.sparse = Some(sparse);
                if mapping.reach(0, u64::MAX).is_none() {
                    return Err(too_many_parts());
                }
            }
        }
        if options.survive_truncation {
            // Exposed: the signal handler makes pointers from these numbers.
            let start = base.as_ptr().expose_provenance();
            mapping.protection = Some(sigbus::register(sigbus::Range {
                edges: [0, plan.descriptors, plan.payload, plan.mirror, plan.context, plan.end]
                    .map(|edge| start + edge),
                page_bytes: page,
                writable: options.access == Access::ReadWrite,
            }));
        }
        if options.prefault {
            mapping.prefault(0, plan.mirror)?;
            mapping.prefault(plan.context, plan.end - plan.context)?;
        }
        Ok(mapping)
    }

    /// Maps a part of the file, whole pages, wherever it belongs.
    fn place_part(&self, file: BorrowedFd<'_>, part: Range<u64>) -> Result<(), ShmError> {
        let plan = &self.plan;
        // The context follows the only copy of the payload in the file.
        let places =
            [(0, plan.mirror, 0), (plan.mirror, plan.context, plan.payload), (plan.context, plan.end, plan.mirror)];
        for (start, end, file_offset) in places {
            let first = part.start.max(file_offset as u64);
            let behind = part.end.min((file_offset + (end - start)) as u64);
            if first < behind {
                // Both lie within the plan, whose places are `usize`.
                self.place(file, start + (first as usize - file_offset), (behind - first) as usize, first)?;
            }
        }
        Ok(())
    }

    /// Puts zero pages everywhere, which take no memory.
    fn place_zeros(&self) -> Result<(), ShmError> {
        let flags = MapFlags::PRIVATE | MapFlags::FIXED | MapFlags::NORESERVE;
        // SAFETY: [0, plan.end) lies within our own reservation, so that MAP_FIXED replaces only pages that nobody else uses.
        let mapped = unsafe { mmap_anonymous(self.address(0), self.plan.end, ProtFlags::READ, flags) };
        mapped.map(|_| ()).map_err(no_address_space)
    }

    /// Whether only some of the file is mapped, because it has holes.
    #[must_use]
    pub fn is_sparse(&self) -> bool {
        self.sparse.is_some()
    }

    /// Of a sparse file, maps what has been written since to these bytes of it. Whether something was; `None` if something is there that cannot be
    /// mapped, and reads as zeros.
    pub fn reach(&self, file_offset: u64, bytes: u64) -> Option<bool> {
        let Some(sparse) = &self.sparse else { return Some(false) };
        let end = file_offset.saturating_add(bytes).min(self.plan.file_end());
        let reached = sparse.reach(file_offset..end, |file, part| self.place_part(file, part).is_ok());
        match reached {
            Reached::Nothing => Some(false),
            Reached::More => Some(true),
            Reached::Failed => None,
        }
    }

    /// Of a sparse file, where the first part at or behind `file_offset` begins that is there; `None` if nothing is.
    #[must_use]
    pub fn next_data(&self, file_offset: u64) -> Option<u64> {
        match &self.sparse {
            Some(sparse) => sparse.next_data(file_offset),
            None => Some(file_offset),
        }
    }

    /// Maps `bytes` of the file from `file_offset` over the reservation at `place`.
    fn place(&self, file: BorrowedFd<'_>, place: usize, bytes: usize, file_offset: u64) -> Result<(), ShmError> {
        let rights = match self.access {
            Access::ReadOnly => ProtFlags::READ,
            Access::ReadWrite => ProtFlags::READ | ProtFlags::WRITE,
        };
        let address = self.address(place);
        // NORESERVE: our hugetlbfs files have their pages already; for the holes of somebody else's, a reader must not take pages from the pool.
        let flags = MapFlags::SHARED | MapFlags::FIXED | MapFlags::NORESERVE;
        // SAFETY: [place, place + bytes) lies within our own reservation (the plan's places are ordered and end at `plan.end`), so that MAP_FIXED
        // replaces only pages that nobody else uses.
        let mapped = unsafe { mmap(address, bytes, rights, flags, file, file_offset) };
        match mapped {
            Ok(_) => Ok(()),
            Err(Errno::NOMEM) => Err(no_address_space(Errno::NOMEM)),
            Err(errno) => Err(ShmError::from_errno(OPERATION, errno)),
        }
    }

    /// Touches the pages of a part of the mapping.
    fn prefault(&self, place: usize, bytes: usize) -> Result<(), ShmError> {
        if bytes == 0 {
            return Ok(());
        }
        let advice = match self.access {
            Access::ReadOnly => Advice::LinuxPopulateRead,
            Access::ReadWrite => Advice::LinuxPopulateWrite,
        };
        let address = self.address(place);
        loop {
            // SAFETY: the range lies within our own mapping; populating changes no content.
            let populated = unsafe { madvise(address, bytes, advice) };
            match populated {
                // INVAL: kernel before 5.14. The pages are allocated, only their page-table entries come later.
                Ok(()) | Err(Errno::INVAL) => return Ok(()),
                Err(Errno::INTR | Errno::AGAIN) => {}
                Err(errno @ (Errno::FAULT | Errno::NOMEM)) => {
                    return Err(ShmError::new(
                        ShmErrorKind::NoSpace,
                        "prefault ring file",
                        "there is no memory behind some of its pages",
                    )
                    .caused_by(errno)
                    .mend("free memory, or choose a smaller ring"));
                }
                Err(errno) => return Err(ShmError::from_errno("prefault ring file", errno)),
            }
        }
    }

    fn address(&self, place: usize) -> *mut c_void {
        self.at(place).as_ptr().cast()
    }

    fn at(&self, place: usize) -> NonNull<u8> {
        debug_assert!(place <= self.plan.end);
        // SAFETY: callers pass places of the plan, all of them ≤ `plan.end`, which lies within the reservation.
        unsafe { self.base.add(place) }
    }

    /// First byte of the header section.
    #[must_use]
    pub fn header(&self) -> NonNull<u8> {
        self.base
    }

    /// First byte of the descriptor array.
    #[must_use]
    pub fn descriptors(&self) -> NonNull<u8> {
        self.at(self.plan.descriptors)
    }

    /// First byte of the payload buffer. Valid for *twice* [`payload_bytes`](Self::payload_bytes): the second half is the first once more.
    #[must_use]
    pub fn payload(&self) -> NonNull<u8> {
        self.at(self.plan.payload)
    }

    /// First byte of the context area; valid for [`context_bytes`](Self::context_bytes), which may be 0.
    #[must_use]
    pub fn context(&self) -> NonNull<u8> {
        self.at(self.plan.context)
    }

    /// Length of the header section.
    #[must_use]
    pub fn header_bytes(&self) -> usize {
        self.plan.descriptors
    }

    /// Length of the descriptor array.
    #[must_use]
    pub fn descriptor_bytes(&self) -> usize {
        self.plan.payload - self.plan.descriptors
    }

    /// Length of the payload buffer, counted once.
    #[must_use]
    pub fn payload_bytes(&self) -> usize {
        self.plan.mirror - self.plan.payload
    }

    /// Length of the context area.
    #[must_use]
    pub fn context_bytes(&self) -> usize {
        // Cannot fail: the plan holds the same number rounded up.
        usize::try_from(self.sections.context_bytes).unwrap_or(0)
    }

    /// The sizes that the mapping was made with.
    #[must_use]
    pub fn sections(&self) -> Sections {
        self.sections
    }

    /// Size of the pages behind it: 4096, 2 MiB on hugetlbfs.
    #[must_use]
    pub fn page_bytes(&self) -> usize {
        self.page_bytes
    }

    /// Whether stores are allowed.
    #[must_use]
    pub fn access(&self) -> Access {
        self.access
    }

    /// Whether an access found no page: the file is shorter than it was when it was mapped, or it is as [`Self::lost_pages`] says.
    ///
    /// From then on the lost part reads as zeros, and stores to it go nowhere. `false` does not mean that nobody truncated the file: only that no
    /// access has met the missing part. Always `false` without [`MapOptions::survive_truncation`].
    #[must_use]
    pub fn was_truncated(&self) -> bool {
        self.protection.as_ref().is_some_and(sigbus::Registration::was_truncated)
    }
}

impl Mapping {
    /// Why an access found no page, if one did; `file` is the file that was mapped.
    #[must_use]
    pub fn lost_pages(&self, file: impl AsFd) -> Option<LostPages> {
        self.was_truncated().then(|| {
            if require_length(file.as_fd(), &self.sections, self.page_bytes as u64).is_err() {
                LostPages::Truncated
            } else if has_memory_pages(file.as_fd()) {
                LostPages::NoMemory
            } else {
                LostPages::Unreadable
            }
        })
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // The handler must not know the range any more when somebody else can get the same addresses.
        self.protection = None;
        // SAFETY: the range is our own reservation with our own mappings over it; the pointers handed out are documented to end with `self`.
        // An error (a limit on the number of mappings) leaves the range mapped, which harms nobody.
        let _ = unsafe { munmap(self.reservation.as_ptr().cast(), self.reserved_bytes) };
    }
}

fn require_length(file: BorrowedFd<'_>, sections: &Sections, page_bytes: u64) -> Result<(), ShmError> {
    let stat = fstat(file).map_err(|errno| ShmError::from_errno(OPERATION, errno))?;
    let found = u64::try_from(stat.st_size).unwrap_or(0);
    let needed = sections.file_bytes().ok_or_else(too_large)?;
    let reaches = found.checked_next_multiple_of(page_bytes).unwrap_or(found);
    if reaches < needed {
        return Err(ShmError::new(
            ShmErrorKind::Truncated,
            OPERATION,
            format_args!("it has {found} bytes, its sections need {needed}"),
        )
        .mend("it was cut off or is not a ring file; make it anew"));
    }
    Ok(())
}

fn too_large() -> ShmError {
    ShmError::new(ShmErrorKind::BadSections, OPERATION, "it is larger than the address space")
}

fn no_address_space(errno: Errno) -> ShmError {
    ShmError::new(ShmErrorKind::NoSpace, OPERATION, "the process has no address space or no mappings left")
        .caused_by(errno)
        .mend("raise the limit on virtual memory (ulimit -v) or vm.max_map_count, or choose a smaller ring")
}

/// Adds the path that the kernel knows for the descriptor.
fn name_file(error: ShmError, file: BorrowedFd<'_>) -> ShmError {
    match super::page_size::path_of(file) {
        Some(path) => error.at(&path),
        None => error,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shm::{MemfdOptions, OwnedRingFile, create_memfd};

    const SECTIONS: Sections =
        Sections { header_bytes: 2 << 20, descriptor_bytes: 4 << 20, payload_bytes: 2 << 20, context_bytes: 5000 };

    fn ring(sections: Sections) -> (OwnedRingFile, Mapping) {
        let bytes = sections.file_bytes().unwrap();
        create_memfd("test", bytes, &MemfdOptions::default(), |file| Mapping::map(file, sections, MapOptions::writer()))
            .unwrap()
    }

    fn store(place: NonNull<u8>, offset: usize, byte: u8) {
        // SAFETY: the tests pass places and offsets within a writable mapping.
        let place = unsafe { place.add(offset) };
        // SAFETY: as above; nobody else uses the byte.
        unsafe { place.write_volatile(byte) };
    }

    fn load(place: NonNull<u8>, offset: usize) -> u8 {
        // SAFETY: the tests pass places and offsets within a mapping.
        let place = unsafe { place.add(offset) };
        // SAFETY: as above.
        unsafe { place.read_volatile() }
    }

    #[test]
    fn what_runs_over_the_end_of_the_payload_appears_at_its_start() {
        let (_file, map) = ring(SECTIONS);
        let end = map.payload_bytes();
        for i in 0..16 {
            store(map.payload(), end - 8 + i, 0xa0 + u8::try_from(i).unwrap());
        }
        for i in 0..8 {
            assert_eq!(load(map.payload(), i), 0xa8 + u8::try_from(i).unwrap());
        }
        store(map.payload(), 0, 1);
        assert_eq!(load(map.payload(), end), 1);
        store(map.payload(), 2 * end - 1, 2);
        assert_eq!(load(map.payload(), end - 1), 2);
        // The neighbours have seen nothing of it.
        assert_eq!(load(map.descriptors(), map.descriptor_bytes() - 1), 0);
        assert_eq!(load(map.context(), 0), 0);
    }

    #[test]
    fn every_section_is_where_the_file_has_it() {
        let (file, map) = ring(SECTIONS);
        store(map.header(), 0, 1);
        store(map.header(), map.header_bytes() - 1, 2);
        store(map.descriptors(), 0, 3);
        store(map.payload(), 0, 4);
        store(map.payload(), map.payload_bytes(), 5);
        store(map.context(), 0, 6);
        store(map.context(), map.context_bytes() - 1, 7);
        assert_eq!(map.context_bytes(), 5000);
        for (offset, byte) in
            [(0, 1), ((2 << 20) - 1, 2), (2 << 20, 3), (6 << 20, 5), (8 << 20, 6), ((8 << 20) + 4999, 7)]
        {
            let mut found = [0];
            rustix::io::pread(&file, &mut found, offset).unwrap();
            assert_eq!(found[0], byte, "at {offset}");
        }
        let reader = Mapping::map(&file, SECTIONS, MapOptions::reader()).unwrap();
        assert_eq!(load(reader.context(), 4999), 7);
        assert_eq!(load(reader.payload(), reader.payload_bytes()), 5);
        assert_eq!(reader.header().addr().get() % (2 << 20), 0);
    }

    #[test]
    fn a_file_that_is_short_within_its_last_page_maps_and_a_shorter_one_does_not() {
        let file = tempfile::tempfile_in("/dev/shm").unwrap();
        let bytes = SECTIONS.payload_offset().unwrap() + SECTIONS.payload_bytes;
        let sections = Sections { context_bytes: 0, ..SECTIONS };
        file.set_len(bytes - 8).unwrap();
        let map = Mapping::map(&file, sections, MapOptions::reader()).unwrap();
        assert_eq!(load(map.payload(), map.payload_bytes() - 1), 0);
        drop(map);
        file.set_len(bytes - 4096).unwrap();
        let error = Mapping::map(&file, sections, MapOptions::reader()).unwrap_err();
        assert_eq!(error.kind(), ShmErrorKind::Truncated);
        assert!(error.to_string().contains("8384512 bytes, its sections need 8388608"), "{error}");
    }

    #[test]
    fn a_descriptor_for_reading_cannot_be_mapped_for_writing() {
        let path = tempfile::NamedTempFile::new_in("/dev/shm").unwrap();
        path.as_file().set_len(SECTIONS.file_bytes().unwrap()).unwrap();
        let file = std::fs::File::open(path.path()).unwrap();
        let error = Mapping::map(&file, SECTIONS, MapOptions::writer()).unwrap_err();
        assert_eq!(error.kind(), ShmErrorKind::PermissionDenied);
        assert_eq!(error.path(), Some(path.path()));
        Mapping::map(&file, SECTIONS, MapOptions { prefault: true, ..MapOptions::reader() }).unwrap();
    }

    #[test]
    fn sizes_beyond_the_address_space_are_an_error() {
        let (file, _map) = ring(SECTIONS);
        for payload_bytes in [1 << 62, (1 << 63) - (6 << 20), !4095] {
            let sections = Sections { payload_bytes, ..SECTIONS };
            let error = Mapping::map(&file, sections, MapOptions::reader()).unwrap_err();
            assert!(matches!(error.kind(), ShmErrorKind::BadSections | ShmErrorKind::Truncated), "{error}");
        }
        // A sparse file may be that large; the address space is not.
        let sparse = tempfile::tempfile_in("/dev/shm").unwrap();
        let sections = Sections { payload_bytes: 1 << 60, ..SECTIONS };
        sparse.set_len(sections.file_bytes().unwrap()).unwrap();
        let error = Mapping::map(&sparse, sections, MapOptions::reader()).unwrap_err();
        assert_eq!(error.kind(), ShmErrorKind::NoSpace, "{error}");
    }

    #[test]
    fn a_dropped_mapping_leaves_nothing_in_the_address_space() {
        let (file, map) = ring(SECTIONS);
        let start = map.header().addr().get();
        // Other tests may map their own files at the same place meanwhile.
        let inode = rustix::fs::fstat(&file).unwrap().st_ino.to_string();
        let is_mapped = || {
            std::fs::read_to_string("/proc/self/maps").unwrap().lines().any(|line| {
                let (from, rest) = line.split_once('-').unwrap();
                let to = rest.split(' ').next().unwrap();
                let from = usize::from_str_radix(from, 16).unwrap();
                let to = usize::from_str_radix(to, 16).unwrap();
                line.split_whitespace().nth(4) == Some(&inode) && (from..to).contains(&start)
            })
        };
        assert!(is_mapped());
        drop(map);
        assert!(!is_mapped());
    }
}
