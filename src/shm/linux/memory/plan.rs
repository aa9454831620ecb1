//! The addresses of the sections of a ring file in memory.

use std::fmt;

use crate::shm::error::{ShmError, ShmErrorKind};
use crate::shm::sections::Sections;

pub(in crate::shm::linux) const OPERATION: &str = "map ring file";

/// The offsets of the sections from the start of a mapping.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::shm::linux) struct Plan {
    pub descriptors: usize,
    pub payload: usize,
    pub mirror: usize,
    pub context: usize,
    /// The end of the context area, rounded up to whole pages.
    pub end: usize,
}

impl Plan {
    /// Returns the file offset at which the last section ends, rounded up to whole pages. It is less than `end`,
    /// because the mapping has the payload buffer twice and the file has it once.
    pub(in crate::shm::linux) fn file_end(&self) -> u64 {
        (self.end - (self.context - self.mirror)) as u64
    }

    /// Lays the sections out for pages of `page_bytes`.
    pub(in crate::shm::linux) fn new(sections: &Sections, page_bytes: u64) -> Result<Self, ShmError> {
        let bad = |found: fmt::Arguments<'_>| ShmError::new(ShmErrorKind::BadSections, OPERATION, found);
        // A file without events has no payload buffer.
        let payload_may_be_empty = sections.descriptor_bytes == 0;
        for (name, is_missing) in [
            ("header section", sections.header_bytes == 0),
            ("payload buffer", sections.payload_bytes == 0 && !payload_may_be_empty),
        ] {
            if is_missing {
                return Err(bad(format_args!("its {name} is empty")));
            }
        }
        let payload = sections.payload_offset();
        for (name, bytes) in
            [("payload buffer's offset", payload), ("payload buffer's size", Some(sections.payload_bytes))]
        {
            if bytes.is_some_and(|bytes| bytes % page_bytes != 0) {
                let bytes = bytes.unwrap_or_default();
                return Err(bad(format_args!(
                    "the {name} of {bytes} bytes is not a multiple of the file system's pages of {page_bytes} bytes"
                ))
                .mend("put the ring on a file system with pages of at most 2 MiB"));
            }
        }
        let laid_out = || {
            let payload = payload?;
            let mirror = payload.checked_add(sections.payload_bytes)?;
            let context = mirror.checked_add(sections.payload_bytes)?;
            let context_bytes = sections.context_bytes.checked_next_multiple_of(page_bytes)?;
            let end = context.checked_add(context_bytes)?;
            // The length of the file must also fit into a signed 64-bit number, because file offsets are signed.
            i64::try_from(sections.file_bytes()?).ok()?;
            isize::try_from(end).ok()?;
            Some(Self {
                descriptors: usize::try_from(sections.header_bytes).ok()?,
                payload: usize::try_from(payload).ok()?,
                mirror: usize::try_from(mirror).ok()?,
                context: usize::try_from(context).ok()?,
                end: usize::try_from(end).ok()?,
            })
        };
        laid_out().ok_or_else(|| {
            bad(format_args!(
                "sections of {} + {} + {} + {} bytes are larger than the address space",
                sections.header_bytes, sections.descriptor_bytes, sections.payload_bytes, sections.context_bytes
            ))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const PAGE: u64 = 4096;

    fn sections(header: u64, descriptor: u64, payload: u64, context: u64) -> Sections {
        Sections { header_bytes: header, descriptor_bytes: descriptor, payload_bytes: payload, context_bytes: context }
    }

    #[test]
    fn the_payload_is_laid_out_twice_and_the_context_behind_it() {
        let sections = sections(PAGE, 2 * PAGE, 8 * PAGE, 100);
        let plan = Plan::new(&sections, PAGE).unwrap();
        let page = usize::try_from(PAGE).unwrap();
        assert_eq!(
            plan,
            Plan { descriptors: page, payload: 3 * page, mirror: 11 * page, context: 19 * page, end: 20 * page }
        );
        assert_eq!(sections.file_bytes(), Some(11 * PAGE + 100));
    }

    #[test]
    fn sizes_that_no_page_or_address_space_can_hold_are_refused() {
        for (header, descriptor, payload, context, expected) in [
            (0, 0, PAGE, 0, "header section is empty"),
            (PAGE, PAGE, 0, 0, "payload buffer is empty"),
            (PAGE, 64, PAGE, 0, "payload buffer's offset"),
            (PAGE, 0, 100, 0, "payload buffer's size"),
            (PAGE, 0, 1 << 63, 0, "larger than the address space"),
            (PAGE, u64::MAX, PAGE, 0, "larger than the address space"),
            (PAGE, 0, PAGE, u64::MAX, "larger than the address space"),
        ] {
            let error = Plan::new(&sections(header, descriptor, payload, context), PAGE).unwrap_err();
            assert_eq!(error.kind(), ShmErrorKind::BadSections);
            assert!(error.to_string().contains(expected), "{error}");
        }
    }

    proptest! {
        #[test]
        fn any_sizes_give_ordered_page_aligned_places_or_an_error(
            header: u64, descriptor: u64, payload: u64, context: u64, shift in 0..50u32,
        ) {
            let mask = !(PAGE - 1);
            let sections = sections(
                (header >> shift) & mask, (descriptor >> shift) & mask, (payload >> shift) & mask, context >> shift,
            );
            if let Ok(plan) = Plan::new(&sections, PAGE) {
                let page = usize::try_from(PAGE).unwrap();
                prop_assert!(plan.descriptors <= plan.payload && plan.payload <= plan.mirror);
                prop_assert!(plan.mirror <= plan.context && plan.context <= plan.end);
                prop_assert_eq!(plan.mirror - plan.payload, plan.context - plan.mirror);
                for place in [plan.payload, plan.mirror, plan.context, plan.end] {
                    prop_assert_eq!(place % page, 0);
                }
            }
        }
    }
}
