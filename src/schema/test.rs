//! The published TEST schema (content type 1): two small events for tests of rings.

use super::payload::{EventPayload, EventType};

/// The events of content type TEST.
#[derive(EventType, Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[event(
    content_type = 1,
    own_schema,
    name = "TEST",
    schema_hash = "0000000000000000000000000000000000000000000000000000000000000000",
    no_span
)]
#[repr(u16)]
pub enum TestEvent {
    /// An event that could not be recorded
    RecordError = 1,
    /// A number that each writer counts up
    #[event(payload = TestCounter)]
    TestCounter = 2,
    /// A payload of variable length
    #[event(payload = TestVlt, trailing(vlt_1: u8 * vlt_1_length, vlt_2: u8 * vlt_2_length))]
    TestVlt = 3,
}

/// A number that each writer counts up.
#[derive(EventPayload, Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct TestCounter {
    /// Id of the writer.
    pub writer_id: u8,
    /// The writer's count.
    pub counter: u64,
}

/// The lengths of two byte strings, which follow.
#[derive(EventPayload, Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct TestVlt {
    /// Bytes in the first.
    pub vlt_1_length: u32,
    /// Bytes in the second.
    pub vlt_2_length: u32,
}
