//! A range of addresses that no other mapping gets. The parts of a ring file are mapped over this range.

use std::ffi::c_void;
use std::os::fd::BorrowedFd;
use std::ptr::{self, NonNull};

use rustix::io::Errno;
use rustix::mm::{Advice, MapFlags, ProtFlags, madvise, mmap, mmap_anonymous, munmap};

use super::plan::OPERATION;
use crate::shm::error::{ShmError, ShmErrorKind};
use crate::shm::options::Access;

/// A reserved range of addresses without access rights. Before and after the part that is used, at least one page
/// stays without access rights as a guard. Dropping the value unmaps the whole range.
#[derive(Debug)]
pub(in crate::shm::linux) struct AddressReservation {
    start: NonNull<u8>,
    reserved_bytes: usize,
    /// The aligned start of the part that is used.
    base: NonNull<u8>,
    used_bytes: usize,
}

// SAFETY: a reservation is memory of the process, not of one thread, and any thread may unmap it.
unsafe impl Send for AddressReservation {}
// SAFETY: the methods that take `&self` only return addresses, or map within the range. The kernel orders such calls.
unsafe impl Sync for AddressReservation {}

impl AddressReservation {
    /// Reserves `bytes` bytes whose start is a multiple of `alignment`. `alignment` is a multiple of `page_bytes`.
    pub(in crate::shm::linux) fn new(bytes: usize, alignment: usize, page_bytes: usize) -> Result<Self, ShmError> {
        // Twice the alignment is added to `bytes`. This is enough for the bytes that are skipped to reach an aligned
        // start, the guard page before this start, and the guard page after the end.
        let reserved_bytes =
            alignment.checked_mul(2).and_then(|slack| slack.checked_add(bytes)).ok_or_else(too_large)?;
        let flags = MapFlags::PRIVATE | MapFlags::NORESERVE;
        // SAFETY: a fresh anonymous mapping at an address of the kernel's choice overlaps nothing.
        let start = unsafe { mmap_anonymous(ptr::null_mut(), reserved_bytes, ProtFlags::empty(), flags) }
            .map_err(no_address_space)?;
        let start = NonNull::new(start.cast::<u8>()).ok_or_else(too_large)?;
        let skipped = (start.addr().get() + page_bytes).next_multiple_of(alignment) - start.addr().get();
        // SAFETY: `skipped` < 2 * `alignment`, and the reservation has `bytes` + 2 * `alignment` bytes. So the `bytes`
        // bytes from `skipped` on lie within the reservation.
        let base = unsafe { start.add(skipped) };
        Ok(Self { start, reserved_bytes, base, used_bytes: bytes })
    }

    /// Returns the address at `offset` of the used part. `offset` is at most the length of the used part.
    pub(in crate::shm::linux) fn at(&self, offset: usize) -> NonNull<u8> {
        debug_assert!(offset <= self.used_bytes);
        // SAFETY: the callers' offsets are at most `used_bytes`, and all such offsets lie within the reservation.
        unsafe { self.base.add(offset) }
    }

    fn address(&self, offset: usize) -> *mut c_void {
        self.at(offset).as_ptr().cast()
    }

    /// Checks that the range of `bytes` bytes from `offset` lies within the used part. With MAP_FIXED, a range outside
    /// of it would replace other mappings of the process.
    fn require_inside(&self, offset: usize, bytes: usize) -> Result<(), ShmError> {
        let is_inside = offset.checked_add(bytes).is_some_and(|end| end <= self.used_bytes);
        if is_inside { Ok(()) } else { Err(too_large()) }
    }

    /// Maps `bytes` bytes of the file, from `file_offset` on, to the address that is `offset` bytes after the begin
    /// of the used part of the reservation.
    pub(in crate::shm::linux) fn map_file(
        &self,
        offset: usize,
        bytes: usize,
        file: BorrowedFd<'_>,
        file_offset: u64,
        access: Access,
    ) -> Result<(), ShmError> {
        self.require_inside(offset, bytes)?;
        let rights = match access {
            Access::ReadOnly => ProtFlags::READ,
            Access::ReadWrite => ProtFlags::READ | ProtFlags::WRITE,
        };
        // Without NORESERVE, the kernel would reserve pages of the pool for the holes of a sparse file on hugetlbfs. A
        // reader of another user's file must not take these pages. Ring files that this process makes have their pages
        // already.
        let flags = MapFlags::SHARED | MapFlags::FIXED | MapFlags::NORESERVE;
        // SAFETY: the range lies within this reservation, so MAP_FIXED replaces only pages that nobody else uses.
        match unsafe { mmap(self.address(offset), bytes, rights, flags, file, file_offset) } {
            Ok(_) => Ok(()),
            Err(Errno::NOMEM) => Err(no_address_space(Errno::NOMEM)),
            Err(errno) => Err(ShmError::from_errno(OPERATION, errno)),
        }
    }

    /// Maps zero pages over the whole used part. These pages take no memory.
    pub(in crate::shm::linux) fn map_zeros(&self) -> Result<(), ShmError> {
        let flags = MapFlags::PRIVATE | MapFlags::FIXED | MapFlags::NORESERVE;
        // SAFETY: the used part lies within this reservation, so MAP_FIXED replaces only pages that nobody else uses.
        let mapped = unsafe { mmap_anonymous(self.address(0), self.used_bytes, ProtFlags::READ, flags) };
        mapped.map(|_| ()).map_err(no_address_space)
    }

    /// Takes the pages of a range out of the memory of this process. Later accesses find the same content again,
    /// because the pages are those of a file, or zero pages.
    pub(in crate::shm::linux) fn release(&self, offset: usize, bytes: usize) {
        if bytes > 0 && self.require_inside(offset, bytes).is_ok() {
            // SAFETY: the range lies within this reservation. Everything that is mapped there is a shared mapping of a
            // file, whose content DONTNEED does not change, or a private mapping of zero pages, which are zero again.
            // A failure only means that the pages stay.
            let _ = unsafe { madvise(self.address(offset), bytes, Advice::LinuxDontNeed) };
        }
    }

    /// Leaves the used part out of core files of this process.
    pub(in crate::shm::linux) fn leave_out_of_cores(&self) {
        // SAFETY: the range is the used part of this reservation, and the advice changes no content. A failure only
        // means that core files have the pages.
        let _ = unsafe { madvise(self.address(0), self.used_bytes, Advice::LinuxDontDump) };
    }

    /// Makes the kernel map the pages of a range now. Later accesses to the range then cause no page fault.
    pub(in crate::shm::linux) fn prefault(&self, offset: usize, bytes: usize, access: Access) -> Result<(), ShmError> {
        if bytes == 0 {
            return Ok(());
        }
        self.require_inside(offset, bytes)?;
        let advice = match access {
            Access::ReadOnly => Advice::LinuxPopulateRead,
            Access::ReadWrite => Advice::LinuxPopulateWrite,
        };
        loop {
            // SAFETY: the range lies within this reservation. Populating its pages changes no content.
            let populated = unsafe { madvise(self.address(offset), bytes, advice) };
            match populated {
                // Kernels before 5.14 return INVAL. The file has its pages nevertheless, but the first access to each
                // page causes a page fault.
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
}

impl Drop for AddressReservation {
    fn drop(&mut self) {
        // SAFETY: the range is this reservation, with everything that was mapped over it. By the documentation of
        // `Mapping`, pointers into the reservation are valid only while it lives. If the process has too many mappings,
        // `munmap` fails and the range stays mapped, which does no harm.
        let _ = unsafe { munmap(self.start.as_ptr().cast(), self.reserved_bytes) };
    }
}

/// Returns the error for sizes beyond the address space.
pub(in crate::shm::linux) fn too_large() -> ShmError {
    ShmError::new(ShmErrorKind::BadSections, OPERATION, "it is larger than the address space")
}

fn no_address_space(errno: Errno) -> ShmError {
    ShmError::new(ShmErrorKind::NoSpace, OPERATION, "the process has no address space or no mappings left")
        .caused_by(errno)
        .mend("raise the limit on virtual memory (ulimit -v) or vm.max_map_count, or choose a smaller ring")
}
