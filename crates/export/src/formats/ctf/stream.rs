//! A stream of events in the order of time, as packets in a file.

use std::io::{self, Write};

/// The number that a packet begins with.
const PACKET_MAGIC: u32 = 0xc1fc_1fc1;
/// A packet ends when its events have this many bytes.
const PACKET_BYTES: usize = 64 << 10;

/// The parts of each packet of a stream that never change.
#[derive(Clone)]
pub(super) struct PacketHead {
    pub(super) uuid: [u8; 16],
    pub(super) class_id: u32,
    pub(super) stream_id: u64,
    /// The last fields of the packet's context: the process and the name of the ring.
    pub(super) origin: Vec<u8>,
}

/// A stream that is being written. Its packets have the fields that [`Metadata`](super::metadata::Metadata) declares.
pub(super) struct Stream {
    file: Box<dyn Write + Send>,
    head: PacketHead,
    /// The open packet. The bytes of its head are written when the packet ends.
    packet: Vec<u8>,
    /// The bytes of the head of a packet.
    head_bytes: usize,
    begin_nanos: u64,
    /// The time of the last event; `None` if there was no event.
    last_nanos: Option<u64>,
    packets: u64,
    /// The events that were lost before the open packet.
    lost: u64,
    /// Further events that were lost, after the last event.
    lost_since: u64,
    /// The time from which on events may have been lost before the first event, in nanoseconds since the epoch.
    created_nanos: u64,
}

impl Stream {
    pub(super) fn new(file: Box<dyn Write + Send>, head: PacketHead, created_nanos: u64) -> Self {
        let mut stream = Self {
            file,
            head,
            packet: Vec::new(),
            head_bytes: 0,
            begin_nanos: 0,
            last_nanos: None,
            packets: 0,
            lost: 0,
            lost_since: 0,
            created_nanos,
        };
        stream.packet = vec![0; stream.packet_head(0, 0).len()];
        stream.head_bytes = stream.packet.len();
        stream
    }

    /// Returns the time of the last event, or 0 if there was no event.
    pub(super) fn last_nanos(&self) -> u64 {
        self.last_nanos.unwrap_or(0)
    }

    /// Adds a loss after the last event.
    pub(super) fn lose(&mut self, count: u64) {
        self.lost_since = self.lost_since.saturating_add(count);
    }

    /// Adds an event. `nanos` must not be smaller than [`Self::last_nanos`].
    pub(super) fn event(&mut self, nanos: u64, class_id: u32, content: &[u8]) -> io::Result<()> {
        if self.lost_since > 0 {
            self.end_packet()?;
            self.put_loss(nanos)?;
        }
        if self.packet.len() == self.head_bytes {
            self.begin_nanos = nanos;
        }
        self.packet.extend(nanos.to_le_bytes());
        self.packet.extend(class_id.to_le_bytes());
        self.packet.extend(content);
        self.last_nanos = Some(nanos);
        if self.packet.len() >= PACKET_BYTES { self.end_packet() } else { Ok(()) }
    }

    /// Writes the events and losses that are not written yet. `last_nanos` is the time of the last event of all
    /// streams.
    pub(super) fn finish(&mut self, last_nanos: u64) -> io::Result<()> {
        self.end_packet()?;
        if self.lost_since > 0 {
            self.put_loss(last_nanos)?;
        }
        self.file.flush()
    }

    pub(super) fn kept_bytes(&self) -> u64 {
        self.packet.capacity() as u64
    }

    /// Ends the open packet, if it has events.
    fn end_packet(&mut self) -> io::Result<()> {
        if self.packet.len() > self.head_bytes {
            self.write_packet(self.begin_nanos, self.last_nanos())?;
        }
        Ok(())
    }

    /// Writes a packet without events for a loss that ends at `until_nanos`. Readers say that the events were lost
    /// between the end of the packet before and the end of this one.
    fn put_loss(&mut self, until_nanos: u64) -> io::Result<()> {
        let from_nanos = self.last_nanos.unwrap_or(self.created_nanos.min(until_nanos));
        if self.packets == 0 {
            self.write_packet(from_nanos, from_nanos)?;
        }
        self.lost = self.lost.saturating_add(std::mem::take(&mut self.lost_since));
        self.write_packet(from_nanos, until_nanos.max(from_nanos))
    }

    fn write_packet(&mut self, begin_nanos: u64, end_nanos: u64) -> io::Result<()> {
        let head = self.packet_head(begin_nanos, end_nanos);
        self.packet[..self.head_bytes].copy_from_slice(&head);
        self.file.write_all(&self.packet)?;
        self.packet.truncate(self.head_bytes);
        self.packets += 1;
        Ok(())
    }

    /// Returns the header and the context of the open packet.
    fn packet_head(&self, begin_nanos: u64, end_nanos: u64) -> Vec<u8> {
        let PacketHead { uuid, class_id, stream_id, origin } = &self.head;
        let bits = 8 * self.packet.len() as u64;
        let mut head = PACKET_MAGIC.to_le_bytes().to_vec();
        head.extend(uuid);
        head.extend(class_id.to_le_bytes());
        let numbers = [*stream_id, begin_nanos, end_nanos, bits, bits, self.packets, self.lost];
        head.extend(numbers.iter().flat_map(|number| number.to_le_bytes()));
        head.extend(origin);
        head
    }
}
