//! A mapping of one ring file: header, descriptors, the payload buffer twice, context area.
//!
//! ```text
//! guard │ header │ descriptors │ payload │ payload again │ context │ guard
//!       └ file offset 0 ───────────────┘ └ same pages ─┘
//! ```
//!
//! The pages of the payload buffer are mapped twice in a row. So a payload that runs over the end of the buffer is
//! contiguous in memory. The parts of the file are mapped over one reserved range of addresses, so no mapping of
//! another thread can lie between the parts.

use std::ops::Range;
use std::os::fd::{AsFd, BorrowedFd};
use std::ptr::NonNull;

use rustix::fs::fstat;

use super::super::system::page_size::{HUGE_PAGE_BYTES, has_memory_pages, page_bytes, path_of};
use super::extents::{Reached, SparseFile, too_many_parts};
use super::plan::{OPERATION, Plan};
use super::reservation::{AddressReservation, too_large};
use super::sigbus;
use crate::shm::answers::LostPages;
use crate::shm::error::{ShmError, ShmErrorKind};
use crate::shm::options::{Access, MapOptions};
use crate::shm::sections::Sections;

/// A mapping of a ring file. Dropping it removes the mapping and leaves the file as it is.
///
/// The methods of a mapping return raw pointers only. Other processes write the same pages, so no Rust reference to
/// them may exist. Each pointer is valid for loads over the stated length, for as long as the mapping lives. With
/// [`Access::ReadWrite`] it is also valid for stores.
#[derive(Debug)]
pub struct Mapping {
    // This field is dropped before `reservation`. The signal handler must forget the range before its addresses become
    // free for other mappings.
    protection: Option<sigbus::RangeRegistration>,
    reservation: AddressReservation,
    plan: Plan,
    sections: Sections,
    page_bytes: usize,
    access: Access,
    /// The sparse file, if only a part of the file is mapped.
    sparse: Option<SparseFile>,
}

impl Mapping {
    /// Maps the file of the descriptor `file`.
    ///
    /// The file must reach at least into the page in which its last section ends. If the file ends inside of that
    /// page, the rest of the page reads as zeros.
    ///
    /// # Errors
    /// [`BadSections`](ShmErrorKind::BadSections) if the sizes overflow or do not fit the file system's page size,
    /// [`Truncated`](ShmErrorKind::Truncated) if the file is too short,
    /// [`PermissionDenied`](ShmErrorKind::PermissionDenied) if the descriptor does not allow the access,
    /// [`NoSpace`](ShmErrorKind::NoSpace) if there is no address space or, when prefaulting, no memory for a page.
    pub fn map(file: impl AsFd, sections: Sections, options: MapOptions) -> Result<Self, ShmError> {
        let file = file.as_fd();
        Self::map_file(file, sections, options).map_err(|error| match path_of(file) {
            Some(path) => error.at(&path),
            None => error,
        })
    }

    fn map_file(file: BorrowedFd<'_>, sections: Sections, options: MapOptions) -> Result<Self, ShmError> {
        let page = page_bytes(file).map_err(|errno| ShmError::from_errno(OPERATION, errno))?;
        let plan = Plan::new(&sections, page)?;
        require_length(file, &sections, page)?;
        let page_bytes = usize::try_from(page).map_err(|_| too_large())?;
        let mut mapping = Self {
            protection: None,
            reservation: AddressReservation::new(plan.end, page_bytes.max(HUGE_PAGE_BYTES), page_bytes)?,
            plan,
            sections,
            page_bytes,
            access: options.access,
            sparse: None,
        };
        let maps_holes = options.map_holes || options.prefault || options.access == Access::ReadWrite;
        match if maps_holes { None } else { SparseFile::detect(file, page)? } {
            None => mapping.map_part(file, 0..u64::MAX)?,
            Some(sparse) => {
                mapping.reservation.map_zeros()?;
                mapping.sparse = Some(sparse);
                if mapping.reach(0, u64::MAX).is_none() {
                    return Err(too_many_parts());
                }
            }
        }
        if options.survive_truncation {
            mapping.protection = Some(mapping.protect());
        }
        if options.prefault {
            mapping.reservation.prefault(0, plan.mirror, options.access)?;
            mapping.reservation.prefault(plan.context, plan.end - plan.context, options.access)?;
        }
        Ok(mapping)
    }

    /// Makes the sections known to the signal handler.
    fn protect(&self) -> sigbus::RangeRegistration {
        let plan = &self.plan;
        // The signal handler gets the addresses as numbers and makes pointers from them. This is allowed only for
        // addresses whose provenance was exposed.
        let start = self.reservation.at(0).as_ptr().expose_provenance();
        sigbus::register(sigbus::Range {
            edges: [0, plan.descriptors, plan.payload, plan.mirror, plan.context, plan.end].map(|edge| start + edge),
            page_bytes: self.page_bytes,
            writable: self.access == Access::ReadWrite,
        })
    }

    /// Maps the part `part` of the file, which consists of whole pages. Payload pages are mapped at both of their
    /// places.
    fn map_part(&self, file: BorrowedFd<'_>, part: Range<u64>) -> Result<(), ShmError> {
        let plan = &self.plan;
        // Each entry has the start and the end of a range of the mapping, and the file offset of the range's first
        // byte. The mapping has the payload twice, the file has it once. So the context area begins earlier in the
        // file than in the mapping.
        let copies =
            [(0, plan.mirror, 0), (plan.mirror, plan.context, plan.payload), (plan.context, plan.end, plan.mirror)];
        for (start, end, file_offset) in copies {
            let first = part.start.max(file_offset as u64);
            let last = part.end.min((file_offset + (end - start)) as u64);
            if first < last {
                // `first` and `last` lie between offsets of the plan, which are `usize`, so the casts lose nothing.
                let offset = start + (first as usize - file_offset);
                self.reservation.map_file(offset, (last - first) as usize, file, first, self.access)?;
            }
        }
        Ok(())
    }

    /// Returns true if only the parts of the file with data are mapped, because the file has holes.
    #[must_use]
    pub fn is_sparse(&self) -> bool {
        self.sparse.is_some()
    }

    /// Maps the data of a sparse file that is not mapped yet, within `bytes` bytes from `file_offset`. A writer may
    /// have written such data into holes of the file.
    ///
    /// Returns `Some(true)` if new data was found and mapped, and `Some(false)` if there is no new data. Returns
    /// `None` if some of the data cannot be mapped. That data reads as zeros.
    pub fn reach(&self, file_offset: u64, bytes: u64) -> Option<bool> {
        let Some(sparse) = &self.sparse else { return Some(false) };
        let end = file_offset.saturating_add(bytes).min(self.plan.file_end());
        let reached = sparse.reach(file_offset..end, |file, part| self.map_part(file, part).is_ok());
        match reached {
            Reached::Nothing => Some(false),
            Reached::More => Some(true),
            Reached::Failed => None,
        }
    }

    /// Returns the file offset of the first data at or after `file_offset`. Returns `None` if no data follows. If the
    /// file is not sparse, returns `file_offset` itself.
    #[must_use]
    pub fn next_data(&self, file_offset: u64) -> Option<u64> {
        match &self.sparse {
            Some(sparse) => sparse.next_data(file_offset),
            None => Some(file_offset),
        }
    }

    /// Takes the descriptor array and the payload buffer out of the memory of this process. They stay in the file, and
    /// later accesses map their pages again. A reader of a large ring calls this after each part that it has read.
    pub fn release_pages(&self) {
        self.reservation.release(self.plan.descriptors, self.plan.context - self.plan.descriptors);
    }

    /// Leaves the mapping out of core files of this process, whatever its filter says. A core file of a sparse file would
    /// give memory to every page of it.
    pub fn leave_out_of_cores(&self) {
        self.reservation.leave_out_of_cores();
    }

    /// Returns the first byte of the header section.
    #[must_use]
    pub fn header(&self) -> NonNull<u8> {
        self.reservation.at(0)
    }

    /// Returns the first byte of the descriptor array.
    #[must_use]
    pub fn descriptors(&self) -> NonNull<u8> {
        self.reservation.at(self.plan.descriptors)
    }

    /// Returns the first byte of the payload buffer. The pointer is valid for *twice*
    /// [`payload_bytes`](Self::payload_bytes) bytes: the second half shows the same memory as the first.
    #[must_use]
    pub fn payload(&self) -> NonNull<u8> {
        self.reservation.at(self.plan.payload)
    }

    /// Returns the first byte of the context area. The area may be empty.
    #[must_use]
    pub fn context(&self) -> NonNull<u8> {
        self.reservation.at(self.plan.context)
    }

    /// Returns the length of the header section.
    #[must_use]
    pub fn header_bytes(&self) -> usize {
        self.plan.descriptors
    }

    /// Returns the length of the descriptor array.
    #[must_use]
    pub fn descriptor_bytes(&self) -> usize {
        self.plan.payload - self.plan.descriptors
    }

    /// Returns the length of the payload buffer, counted once.
    #[must_use]
    pub fn payload_bytes(&self) -> usize {
        self.plan.mirror - self.plan.payload
    }

    /// Returns the length of the context area.
    #[must_use]
    pub fn context_bytes(&self) -> usize {
        // This cannot fail: the plan holds the same number rounded up.
        usize::try_from(self.sections.context_bytes).unwrap_or(0)
    }

    /// Returns the size of the mapped pages in bytes: 2 MiB on hugetlbfs, otherwise the system's page size.
    #[must_use]
    pub fn page_bytes(&self) -> usize {
        self.page_bytes
    }

    /// Returns whether the mapping allows stores.
    #[must_use]
    pub fn access(&self) -> Access {
        self.access
    }

    /// Returns true if an access has found a page missing. [`LostPages`] has the possible reasons.
    ///
    /// The first access to a missing page replaces this page and the rest of its section by zero pages. These pages
    /// read as zeros, and stores to them do not reach the file. A truncation of the file is noticed only when an access
    /// meets a missing page. Without [`MapOptions::survive_truncation`] this function always returns false.
    #[must_use]
    pub fn was_truncated(&self) -> bool {
        self.protection.as_ref().is_some_and(sigbus::RangeRegistration::was_truncated)
    }

    /// Returns the reason why an access to the mapping found a page missing, or `None` if no access has found one
    /// missing. `file` is the file that is mapped.
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

#[cfg(test)]
mod tests;
