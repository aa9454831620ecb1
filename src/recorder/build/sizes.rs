//! The size of a new ring: from shifts, from an amount of memory, or the default.

use super::RecorderBuilder;
use crate::layout::fit::{Events, Shifts, possible_sizes};
use crate::layout::header::CONTENT_TYPE_FIRST_FREE;
use crate::layout::limits::{
    COMPACT_DESCRIPTOR_SHIFTS, COMPACT_PAYLOAD_SHIFTS, DEFAULT_DESCRIPTOR_SHIFT, DEFAULT_PAYLOAD_SHIFT,
    DESCRIPTOR_SHIFTS, PAYLOAD_SHIFTS, PUBLISHED_DEFAULT_PAYLOAD_SHIFT,
};
use crate::recorder::error::{RecorderError, RecorderErrorKind};
use crate::shm::{self, ByteCount, RingSize};
use std::ops::RangeInclusive;

/// Default shifts of an anonymous ring.
const ANONYMOUS_SHIFTS: (u32, u32) = (16, 27);

impl RecorderBuilder {
    /// Returns the ring's name and both shifts. The name is `None` if the ring is anonymous.
    pub(super) fn name_and_shifts(&mut self) -> Result<(Option<shm::RingName>, (u32, u32)), RecorderError> {
        let (name, size) = self.name_and_size()?;
        let shifts = match size {
            Some(RingSize::Shifts { descriptor, payload }) => {
                self.check_shifts(descriptor, payload)?;
                (descriptor, payload)
            }
            Some(RingSize::Memory(bytes)) => self.largest_shifts(bytes)?,
            None => {
                let anonymous = || self.default_shifts.unwrap_or(ANONYMOUS_SHIFTS);
                let (descriptor, payload) = if name.is_some() { self.named_shifts() } else { anonymous() };
                let context_bytes = self.context_bytes()?;
                let wanted = Shifts { descriptor, payload }.ring_bytes(context_bytes);
                match self.affordable_bytes(wanted, || SMALLEST_SHIFTS.ring_bytes(context_bytes))? {
                    bytes if bytes < wanted => self.largest_shifts(bytes)?,
                    _ => (descriptor, payload),
                }
            }
        };
        Ok((name, shifts))
    }

    /// Returns how many bytes the rings of this name may take if the program sets no size: `wanted`, but at most half
    /// of what is free there, so that others find some, and this program later. Returns no less than `smallest`. If the
    /// answer is less than `wanted`, the header of the ring will say why.
    pub(crate) fn affordable_bytes(
        &mut self,
        wanted: u64,
        smallest: impl FnOnce() -> u64,
    ) -> Result<u64, RecorderError> {
        let (name, _) = self.name_and_size()?;
        let place = name.map(|name| shm::RingDirectories::from_environment().location_for_writing(&name));
        match shm::free_bytes(place.as_ref().map(|place| place.path.as_path())) {
            Some(free) if free / 2 < wanted => {
                self.reduced_free_bytes = free;
                Ok((free / 2).max(smallest()).min(wanted))
            }
            _ => Ok(wanted),
        }
    }

    /// Returns the ring's name, and the size that was asked for.
    fn name_and_size(&self) -> Result<(Option<shm::RingName>, Option<RingSize>), RecorderError> {
        if let Some(path) = &self.shard_path {
            return Ok((Some(shm::RingName::Path(path.clone())), self.size));
        }
        let Some(config) = &self.config else { return Ok((None, self.size)) };
        let limits = self.limits(self.named_shifts());
        let parsed = shm::RingConfig::parse(config, &limits).map_err(RecorderError::shm)?;
        Ok((Some(parsed.name), self.size.or(parsed.size)))
    }

    /// Returns the size that was asked for, or `None` if the default is to be used.
    pub(crate) fn asked_size(&self) -> Result<Option<RingSize>, RecorderError> {
        self.name_and_size().map(|(_, size)| size)
    }

    /// Returns the default shifts of a ring that has a name.
    fn named_shifts(&self) -> (u32, u32) {
        let payload = if self.is_published() { PUBLISHED_DEFAULT_PAYLOAD_SHIFT } else { DEFAULT_PAYLOAD_SHIFT };
        self.default_shifts.unwrap_or((DEFAULT_DESCRIPTOR_SHIFT, payload))
    }

    /// Returns the shifts of the largest ring that takes at most `bytes`.
    fn largest_shifts(&self, bytes: u64) -> Result<(u32, u32), RecorderError> {
        let context_bytes = self.context_bytes()?;
        let within = |bytes| {
            // Readers of the original C implementation get a ring that they accept, if one fits.
            let published = || Shifts::within(bytes, context_bytes, false, Events::Any);
            let largest = if self.is_compact() { None } else { published() };
            largest.or_else(|| Shifts::within(bytes, context_bytes, true, Events::Any))
        };
        let shifts = within(bytes).ok_or_else(|| {
            let used = |bytes| within(bytes).map(|shifts| shifts.ring_bytes(context_bytes));
            too_little_memory("the ring", bytes, &possible_sizes(context_bytes, used))
        })?;
        Ok((shifts.descriptor, shifts.payload))
    }

    /// Returns true if the events are published ones, which the readers of the original C implementation know.
    fn is_published(&self) -> bool {
        self.description.content_type() < CONTENT_TYPE_FIRST_FREE
    }

    /// Returns true if the ring may be smaller than the published limits allow.
    fn is_compact(&self) -> bool {
        self.compact || !self.is_published()
    }

    /// Returns the limits of the shifts, and their defaults.
    fn limits(&self, (descriptor, payload): (u32, u32)) -> shm::ConfigLimits {
        let (descriptors, payloads) = if self.is_compact() {
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
        let smaller = if self.is_compact() { "" } else { "; `compact(true)` allows smaller rings" };
        Err(RecorderError::new(
            RecorderErrorKind::BadConfig,
            format_args!(
                "the descriptor shift is {descriptor} and the payload shift {payload}, expected {limits}{smaller}"
            ),
        ))
    }
}

/// The smallest size of a ring.
const SMALLEST_SHIFTS: Shifts =
    Shifts { descriptor: *COMPACT_DESCRIPTOR_SHIFTS.start(), payload: *COMPACT_PAYLOAD_SHIFTS.start() };

/// Returns the error that no ring fits into `bytes`. `possible` has the smallest sizes that are possible.
pub(crate) fn too_little_memory(what: &str, bytes: u64, possible: &[u64]) -> RecorderError {
    let mut sizes = possible.iter().map(|size| ByteCount(*size).to_string());
    let smallest = sizes.next().unwrap_or_default();
    let next: Vec<String> = sizes.collect();
    RecorderError::new(
        RecorderErrorKind::BadConfig,
        format_args!(
            "the memory for {what} is {}, expected at least {smallest}; the next sizes are {}",
            ByteCount(bytes),
            next.join(", ")
        ),
    )
}

fn limits(range: &RangeInclusive<u32>, default: u32) -> shm::ShiftLimits {
    // Shifts are below 64, so the casts lose nothing.
    shm::ShiftLimits { min: *range.start() as u8, max: *range.end() as u8, default: default as u8 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::recorder::{ContentDescription, Recorder};

    #[test]
    fn shifts_out_of_range_are_refused_with_both_limits_in_one_message() {
        let refused = |builder: RecorderBuilder| {
            let error = builder.build().unwrap_err();
            assert_eq!(error.kind(), RecorderErrorKind::BadConfig);
            error.to_string()
        };
        let builder = || Recorder::builder(ContentDescription::new(2, "EXEC"));
        let own = || Recorder::builder(ContentDescription::new(300, "SHOP"));
        insta::assert_snapshot!(
            [
                refused(builder().shifts(15, 41)),
                refused(builder().compact(true).shifts(14, 30)),
                refused(builder().config("shop:15:21")),
                refused(builder().config("shop:14:20").compact(true)),
                refused(own().config("shop:14:20")),
                refused(own().config("shop:5MiB")),
                refused(own().memory(1000)),
                refused(RecorderBuilder { start_table: true, ..builder().config("shop:9MiB") }),
            ]
            .join("\n"),
            @r#"
            the descriptor shift is 15 and the payload shift 41, expected a descriptor shift from 16 to 32 (2^shift events) and a payload shift from 27 to 40 (2^shift bytes); `compact(true)` allows smaller rings
            the descriptor shift is 14 and the payload shift 30, expected a descriptor shift from 15 to 32 (2^shift events) and a payload shift from 21 to 40 (2^shift bytes)
            cannot use ring configuration: "shop:15:21": descriptor shift "15" and payload shift "21", expected a descriptor shift from 16 to 32 (2^shift events) and a payload shift from 27 to 40 (2^shift bytes); write <name-or-path>, <name-or-path>:<size> (`my-app:64MiB`) or <name-or-path>:<descriptor-shift>:<payload-shift>
            cannot use ring configuration: "shop:14:20": descriptor shift "14" and payload shift "20", expected a descriptor shift from 15 to 32 (2^shift events) and a payload shift from 21 to 40 (2^shift bytes); write <name-or-path>, <name-or-path>:<size> (`my-app:64MiB`) or <name-or-path>:<descriptor-shift>:<payload-shift>
            cannot use ring configuration: "shop:14:20": descriptor shift "14" and payload shift "20", expected a descriptor shift from 15 to 32 (2^shift events) and a payload shift from 21 to 40 (2^shift bytes); write <name-or-path>, <name-or-path>:<size> (`my-app:64MiB`) or <name-or-path>:<descriptor-shift>:<payload-shift>
            the memory for the ring is 5 MiB, expected at least 6 MiB; the next sizes are 8 MiB, 10 MiB, 14 MiB
            the memory for the ring is 1000 bytes, expected at least 6 MiB; the next sizes are 8 MiB, 10 MiB, 14 MiB
            the memory for the ring is 9 MiB, expected at least 10 MiB; the next sizes are 12 MiB, 14 MiB, 18 MiB
            "#
        );
    }

    #[test]
    fn the_memory_bounds_the_whole_ring() {
        let shifts = |mut builder: RecorderBuilder| builder.name_and_shifts().unwrap().1;
        let own = || Recorder::builder(ContentDescription::new(300, "SHOP"));
        let published = || Recorder::builder(ContentDescription::new(2, "EXEC"));
        assert_eq!(shifts(own().config("shop")), (19, 26));
        assert_eq!(shifts(published().config("shop")), (19, 27));
        assert_eq!(shifts(own().config("shop:64MiB")), (18, 25));
        assert_eq!(shifts(own().memory(64 << 20)), (18, 25));
        assert_eq!(shifts(own().config("shop:64MiB").shifts(16, 22)), (16, 22));
        assert_eq!(shifts(own().config("shop:16:22").memory(64 << 20)), (18, 25));
        assert_eq!(shifts(own().memory(64 << 20).shifts(16, 22)), (16, 22));
        // The context area is a part of the memory.
        assert_eq!(shifts(own().memory(64 << 20).context_shift(25)), (17, 24));
        // Published events get a ring that the original readers accept, if one fits.
        assert_eq!(shifts(published().memory(140 << 20)), (17, 27));
        assert_eq!(shifts(published().memory(140 << 20).compact(true)), (20, 26));
        assert_eq!(shifts(published().memory(100 << 20)), (19, 26));
        let small = published().memory(8 << 20).anonymous().prefault(false).build().unwrap();
        assert_eq!(small.geometry().file_bytes(), 8 << 20);
    }
}
