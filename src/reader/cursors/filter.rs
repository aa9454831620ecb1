//! Choosing events by their descriptors alone.

use crate::layout::Descriptor;

/// A filter that selects events by their type and their extension words. It reads no payloads.
///
/// An empty filter accepts every event. If the filter names event types, an event must have one of these types. If it
/// names extension words, an event must have the given value in every one of these words.
#[derive(Clone, Debug, Default)]
pub struct EventFilter {
    /// A bit for each of the 65,536 event types, set if the filter accepts the type. `None` accepts all types.
    types: Option<Box<[u64; 1024]>>,
    ext: [Option<u64>; 4],
}

impl EventFilter {
    /// Makes a filter that accepts every event.
    pub fn new() -> Self {
        Self::default()
    }

    /// Accepts only events of this type, and of the types that earlier calls have named.
    #[must_use]
    pub fn event_type(mut self, event_type: u16) -> Self {
        let types = self.types.get_or_insert_with(|| Box::new([0; 1024]));
        types[usize::from(event_type) / 64] |= 1 << (event_type % 64);
        self
    }

    /// Accepts only events whose extension word `index` (0 to 3) is `value`. The
    /// schema says what the words mean.
    ///
    /// # Panics
    /// Panics if `index` is not below 4.
    #[must_use]
    pub fn content_ext(mut self, index: usize, value: u64) -> Self {
        self.ext[index] = Some(value);
        self
    }

    /// Returns true if the event is accepted.
    #[inline]
    pub fn accepts(&self, descriptor: &Descriptor) -> bool {
        let type_fits = self.types.as_ref().is_none_or(|types| {
            types[usize::from(descriptor.event_type) / 64] >> (descriptor.event_type % 64) & 1 == 1
        });
        type_fits
            && self.ext.iter().zip(descriptor.content_ext).all(|(wanted, found)| wanted.is_none_or(|w| w == found))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_are_alternatives_and_words_must_all_fit() {
        let event = |event_type, content_ext| Descriptor { event_type, content_ext, ..Descriptor::default() };
        let filter = EventFilter::new().event_type(2).event_type(65_535).content_ext(1, 7);
        assert!(filter.accepts(&event(2, [0, 7, 0, 0])));
        assert!(filter.accepts(&event(65_535, [9, 7, 0, 0])));
        assert!(!filter.accepts(&event(3, [0, 7, 0, 0])));
        assert!(!filter.accepts(&event(2, [0, 8, 0, 0])));
        assert!(EventFilter::new().accepts(&event(3, [1, 2, 3, 4])));
    }
}
