//! A test of events by what is in them, which the caller of a capture brings along.

use crate::condition::Truth;
use eventring::reader::{Descriptor, PayloadRead, Reader};
use std::fmt;
use std::sync::Arc;

/// A test of the events of one recorder, by their payloads.
///
/// A span is tested when it begins, by the fields that it begins with: what a capture keeps of it cannot wait for its
/// end. If it fulfils the condition, everything in it is kept.
pub trait EventTest: Send {
    /// Takes note of a span that begins. `event` is its SPAN_NEW. Returns whether the span fulfils the condition. The
    /// spans around it were told before, if the rings still had them.
    fn begins(&mut self, event: &Descriptor, payload: PayloadRead<'_>) -> Truth;

    /// Returns whether a log record, a mark or a typed event fulfils the condition. If that depends on its own payload,
    /// which was lost, it is kept: then the data says what is missing.
    fn holds(&mut self, event: &Descriptor, payload: PayloadRead<'_>) -> Truth;

    /// Forgets a span that is closed.
    fn ends(&mut self, span_id: u64);
}

/// Makes the test for the recorder whose shard 0 this is.
type MakeTest = dyn Fn(&Reader) -> Box<dyn EventTest> + Send + Sync;

/// A condition for events, from which each recorder gets a test of its own.
#[derive(Clone)]
pub struct EventCondition {
    text: String,
    make: Arc<MakeTest>,
}

impl EventCondition {
    /// Makes a condition. `text` is what files say about it, and `make` makes the test for the recorder whose shard 0
    /// it gets.
    pub fn new(text: impl Into<String>, make: impl Fn(&Reader) -> Box<dyn EventTest> + Send + Sync + 'static) -> Self {
        Self { text: text.into(), make: Arc::new(make) }
    }

    pub(super) fn test(&self, shard0: &Reader) -> Box<dyn EventTest> {
        (self.make)(shard0)
    }

    pub(super) fn text(&self) -> &str {
        &self.text
    }
}

impl PartialEq for EventCondition {
    fn eq(&self, other: &Self) -> bool {
        self.text == other.text && Arc::ptr_eq(&self.make, &other.make)
    }
}

impl Eq for EventCondition {}

impl fmt::Debug for EventCondition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("EventCondition").field(&self.text).finish()
    }
}
