//! The description of a ring in a capture.

use crate::format::wire::{Bytes, put_text, put_u16, put_u32, put_u64};
use eventring::files::{CONTENT_TYPE_EXEC, CONTENT_TYPE_PERF};
use eventring::reader::{ClockInfo, Reader, RingInfo};
use eventring::schema::{SchemaModel, SchemaTextError};
use std::borrow::Cow;
use std::hash::Hasher as _;
use std::path::Path;
use twox_hash::XxHash3_64;

/// The sampling rate at which all trees are kept.
pub(crate) const ALL_PER_MILLION: u32 = 1_000_000;

/// A ring of a capture.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct CapturedRing {
    /// Name of its file.
    pub name: String,
    /// The index of the process that wrote the ring. Rings that the same process wrote have the same index.
    pub process: u32,
    /// Its role among the rings of that process.
    pub role: RingRole,
    /// Content type, see [`eventring::files`].
    pub content_type: u16,
    /// Name of the content type, if it has one.
    pub content_name: String,
    /// Schema hash.
    pub schema_hash: [u8; 32],
    /// The schema text of the ring, or an empty string if it has none. The text comes from the file and was not
    /// checked: parse it with [`Self::schema`].
    pub schema_text: String,
    /// Number of descriptors that it can hold.
    pub descriptor_capacity: u64,
    /// Bytes of its payload buffer.
    pub payload_buf_bytes: u64,
    /// Bytes of its context area.
    pub context_area_bytes: u64,
    /// Process id of the writer, 0 if not known.
    pub pid: u32,
    /// Name of the writing program, empty if not known.
    pub program_name: String,
    /// The time at which the ring was created, in nanoseconds since the epoch, or 0 if not known.
    pub created_epoch_nanos: u64,
    /// The ring's clock calibration at the start of the capture: kind, ticks0, epoch_nanos0, mult, shift, ticks per
    /// second.
    pub clock: [u64; 6],
    /// The first seqno that this file accounts for. It is 1, or, if only new events were requested, the next seqno at
    /// the start of the capture. In a later file of a rotated capture, it follows the last seqno of the file before.
    pub first_seqno: u64,
    /// The name of the host on which the ring was written. It is empty in a capture that was taken on that host.
    pub host: String,
    /// The filter with which events were taken from the ring, in words; empty if all were wanted.
    pub filter: String,
    /// The number of span trees of a million that the filter keeps.
    pub sampled_per_million: u32,
    /// A number that tells the writing process from all others, also from those of other hosts; 0 if there is none.
    pub(crate) process_key: u64,
}

/// The role of a ring among the rings of its process.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RingRole {
    /// A ring that is no shard.
    Single,
    /// A shard of a perf recorder.
    Shard {
        /// The index of the recorder's shard 0 among the rings of the capture.
        recorder: u32,
        /// Index of the shard.
        shard: u32,
    },
}

impl CapturedRing {
    pub(crate) fn describe(reader: &Reader, process: u32, role: RingRole, first_seqno: u64) -> Self {
        let RingInfo { content_type, schema_hash, geometry, content_name, extension, .. } = reader.info();
        let clock = extension.as_ref().map(|extension| clock_words(&extension.clock)).unwrap_or_default();
        let (pid, program_name, created_epoch_nanos) = extension
            .map(|extension| (extension.writer.pid, extension.writer.program_name, extension.created_epoch_nanos))
            .unwrap_or_default();
        Self {
            name: name_of(reader),
            process,
            role,
            content_type,
            content_name: content_name.unwrap_or_default(),
            schema_hash,
            schema_text: reader.schema_text().unwrap_or_default(),
            descriptor_capacity: geometry.descriptor_capacity(),
            payload_buf_bytes: geometry.payload_buf_bytes(),
            context_area_bytes: geometry.context_area_bytes(),
            pid,
            program_name,
            created_epoch_nanos,
            clock,
            first_seqno,
            host: String::new(),
            filter: String::new(),
            sampled_per_million: ALL_PER_MILLION,
            process_key: 0,
        }
    }

    /// Makes the description of a shard that could not be opened. `self` describes shard 0 of the same recorder, and
    /// most fields are copied from it, also the time at which it was made: only the shard itself has its own.
    pub(crate) fn missed_shard(&self, recorder: u32, shard: u32) -> Self {
        Self {
            name: format!("{}.{shard}", self.name),
            role: RingRole::Shard { recorder, shard },
            context_area_bytes: 0,
            first_seqno: 1,
            ..self.clone()
        }
    }

    /// Returns the index of the ring with the tables of this ring: shard 0 of its recorder. `index` is the index of
    /// this ring, which has its own tables if it is no shard.
    pub(crate) fn shard0(&self, index: u32) -> u32 {
        match self.role {
            RingRole::Shard { recorder, .. } => recorder,
            RingRole::Single => index,
        }
    }

    /// Returns the schema of its events: a published schema, or the one in [`Self::schema_text`].
    ///
    /// # Errors
    /// As [`SchemaModel::of_ring`].
    pub fn schema(&self) -> Result<Cow<'static, SchemaModel>, SchemaTextError> {
        let text = Some(self.schema_text.as_str()).filter(|text| !text.is_empty());
        SchemaModel::of_ring(self.content_type, self.schema_hash, text)
    }

    /// Returns true for a perf ring.
    #[must_use]
    pub fn is_perf(&self) -> bool {
        self.content_type == CONTENT_TYPE_PERF
    }

    /// Returns true for a ring of execution events.
    pub fn is_exec(&self) -> bool {
        self.content_type == CONTENT_TYPE_EXEC
    }

    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut out = Vec::new();
        put_u32(&mut out, self.process);
        let (is_shard, recorder, shard) = match self.role {
            RingRole::Single => (0, 0, 0),
            RingRole::Shard { recorder, shard } => (1, recorder, shard),
        };
        put_u16(&mut out, is_shard);
        put_u16(&mut out, self.content_type);
        put_u32(&mut out, recorder);
        put_u32(&mut out, shard);
        out.extend(self.schema_hash);
        for word in [self.descriptor_capacity, self.payload_buf_bytes, self.context_area_bytes] {
            put_u64(&mut out, word);
        }
        put_u64(&mut out, self.pid.into());
        put_u64(&mut out, self.created_epoch_nanos);
        put_u64(&mut out, self.first_seqno);
        self.clock.into_iter().for_each(|word| put_u64(&mut out, word));
        for text in [&self.name, &self.content_name, &self.program_name, &self.schema_text] {
            put_text(&mut out, text);
        }
        if self.says_its_filter() {
            put_text(&mut out, &self.host);
            put_u64(&mut out, self.process_key);
            put_text(&mut out, &self.filter);
            put_u32(&mut out, self.sampled_per_million);
        }
        out
    }

    /// Returns true if the capture says with which filter events were taken: if it is of another host, or has a filter.
    #[must_use]
    pub fn says_its_filter(&self) -> bool {
        !self.host.is_empty() || !self.filter.is_empty()
    }

    pub(crate) fn decode(bytes: &[u8]) -> Option<Self> {
        let mut bytes = Bytes::new(bytes);
        let process = bytes.u32()?;
        let is_shard = bytes.u16()?;
        let content_type = bytes.u16()?;
        let (recorder, shard) = (bytes.u32()?, bytes.u32()?);
        let role = match is_shard {
            0 => RingRole::Single,
            1 => RingRole::Shard { recorder, shard },
            _ => return None,
        };
        let schema_hash = bytes.hash()?;
        let (descriptor_capacity, payload_buf_bytes, context_area_bytes) = (bytes.u64()?, bytes.u64()?, bytes.u64()?);
        let pid = u32::try_from(bytes.u64()?).ok()?;
        let (created_epoch_nanos, first_seqno) = (bytes.u64()?, bytes.u64()?);
        let mut clock = [0; 6];
        for word in &mut clock {
            *word = bytes.u64()?;
        }
        let (name, content_name, program_name) = (bytes.name()?, bytes.name()?, bytes.name()?);
        let schema_text = bytes.text()?;
        let (host, process_key, filter, sampled_per_million) = match bytes.is_empty() {
            true => (String::new(), 0, String::new(), ALL_PER_MILLION),
            false => (bytes.name()?, bytes.u64()?, bytes.name()?, bytes.u32()?),
        };
        let ring = Self {
            name,
            process,
            role,
            content_type,
            content_name,
            schema_hash,
            schema_text,
            descriptor_capacity,
            payload_buf_bytes,
            context_area_bytes,
            pid,
            program_name,
            created_epoch_nanos,
            clock,
            first_seqno,
            host,
            filter,
            sampled_per_million,
            process_key,
        };
        bytes.is_empty().then_some(ring)
    }
}

fn clock_words(clock: &ClockInfo) -> [u64; 6] {
    [clock.kind, clock.ticks0, clock.epoch_nanos0, clock.mult, clock.shift, clock.ticks_per_second]
}

/// Returns the name of the file of a ring.
pub fn name_of(reader: &Reader) -> String {
    let name = reader.path().and_then(Path::file_name).unwrap_or("ring".as_ref());
    name.to_string_lossy().into_owned()
}

/// Returns a number that tells the process that writes a ring from all other processes; 0 if it is not known.
pub fn process_key(reader: &Reader) -> u64 {
    let Some(extension) = reader.info().extension else { return 0 };
    let mut hasher = XxHash3_64::new();
    extension.writer.identity_words().into_iter().for_each(|word| hasher.write(&word.to_le_bytes()));
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ring_comes_back_and_every_shortened_one_is_refused() {
        let ring = CapturedRing {
            name: "shop.1".into(),
            process: 2,
            role: RingRole::Shard { recorder: 4, shard: 1 },
            content_type: 3,
            content_name: "PERF".into(),
            schema_hash: [7; 32],
            schema_text: "schema-text 1\n".into(),
            descriptor_capacity: 1 << 16,
            payload_buf_bytes: 1 << 27,
            context_area_bytes: 1 << 20,
            pid: 77,
            program_name: "shop".into(),
            created_epoch_nanos: 8,
            clock: [1, 2, 3, 4, 5, 6],
            first_seqno: 1,
            host: String::new(),
            filter: String::new(),
            sampled_per_million: ALL_PER_MILLION,
            process_key: 0,
        };
        let bytes = ring.encode();
        assert_eq!(CapturedRing::decode(&bytes), Some(ring.clone()));
        for end in 0..bytes.len() {
            assert_eq!(CapturedRing::decode(&bytes[..end]), None, "{end}");
        }
        let elsewhere = CapturedRing { host: "web-1".into(), process_key: 9, filter: "level=info".into(), ..ring };
        let with_host = elsewhere.encode();
        assert_eq!(CapturedRing::decode(&with_host), Some(elsewhere));
        for end in bytes.len() + 1..with_host.len() {
            assert_eq!(CapturedRing::decode(&with_host[..end]), None, "{end}");
        }
    }
}
