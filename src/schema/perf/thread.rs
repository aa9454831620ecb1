//! The description of a thread. It is the payload of THREAD_STARTED, and the body of an entry in the table of threads.

use crate::schema::error::DecodeError;
use crate::schema::fields::trailing::{expect_end, split_bytes};
use crate::schema::payload::EventPayload;
use std::borrow::Cow;

/// A thread that records; its name follows.
#[derive(EventPayload, Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
#[event(name = "Thread")]
pub struct ThreadHeader {
    /// When it first recorded, nanoseconds since the epoch.
    pub started_epoch_nanos: u64,
    /// The operating system's id of the thread (Linux: `gettid`).
    pub os_thread_id: u32,
    /// Bytes of the name.
    pub name_bytes: u16,
    /// 1 if the thread records all THREAD_TIME and THREAD_SWITCHED events from its first event on, otherwise 0.
    pub measures_times: u16,
}

/// A thread, read from a payload or a table.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ThreadView<'a> {
    /// The fixed struct.
    pub header: ThreadHeader,
    /// Its name, empty if it has none. Invalid UTF-8 is replaced.
    pub name: Cow<'a, str>,
}

impl<'a> ThreadView<'a> {
    /// Decodes a payload.
    ///
    /// # Errors
    /// Returns an error if the payload does not have the length that its header states.
    pub fn decode(payload: &'a [u8]) -> Result<Self, DecodeError> {
        const OWNER: &str = "THREAD_STARTED";
        let (header, rest) = ThreadHeader::decode(payload)?;
        let (name, rest) = split_bytes(OWNER, "name", rest, header.name_bytes.into())?;
        expect_end(OWNER, rest)?;
        Ok(Self { header, name: String::from_utf8_lossy(name) })
    }

    /// Encodes a thread that does not measure its times, for a payload or a table entry. Cuts a name of more than 4,096
    /// bytes.
    #[must_use]
    pub fn encode(started_epoch_nanos: u64, os_thread_id: u32, name: &str) -> Vec<u8> {
        Self::encode_measured(started_epoch_nanos, os_thread_id, name, false)
    }

    /// Encodes a thread like [`Self::encode`], and says whether it measures its times.
    #[must_use]
    pub fn encode_measured(started_epoch_nanos: u64, os_thread_id: u32, name: &str, measures_times: bool) -> Vec<u8> {
        const NAME_BYTES_MAX: usize = 1 << 12;
        let name = &name[..name.floor_char_boundary(NAME_BYTES_MAX)];
        let (name_bytes, measures_times) = (name.len() as u16, measures_times.into());
        let header = ThreadHeader { started_epoch_nanos, os_thread_id, name_bytes, measures_times };
        header.with_bytes(|fixed| [fixed, name.as_bytes()].concat())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_comes_back_and_a_long_name_is_cut_between_characters() {
        let bytes = ThreadView::encode(5, 77, "worker é");
        let view = ThreadView::decode(&bytes).unwrap();
        assert_eq!((view.header.started_epoch_nanos, view.header.os_thread_id, &*view.name), (5, 77, "worker é"));
        let long = format!("x{}", "é".repeat(4096));
        assert_eq!(ThreadView::decode(&ThreadView::encode(0, 0, &long)).unwrap().name.len(), 4095);
        assert!(ThreadView::decode(&bytes[..bytes.len() - 1]).is_err());
    }
}
