//! Events that a reader can check. A checksum in the last extension word covers every word of the descriptor and
//! every byte of the payload.

/// The number of an event among the events of one writer, counted from 0.
pub type Count = u64;

/// Generator of pseudo-random numbers (SplitMix64).
pub struct Random(u64);

impl Random {
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    pub fn from_time() -> Self {
        let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap();
        Self(now.as_nanos() as u64)
    }

    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        mix(self.0)
    }

    pub fn below(&mut self, limit: u64) -> u64 {
        self.next() % limit
    }
}

fn mix(value: u64) -> u64 {
    let value = (value ^ value >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let value = (value ^ value >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    value ^ value >> 31
}

/// Returns a checksum over 8 bytes at a time.
pub fn checksum(bytes: &[u8]) -> u64 {
    let mut sum = bytes.len() as u64;
    for part in bytes.chunks(8) {
        let mut word = [0; 8];
        word[..part.len()].copy_from_slice(part);
        sum = (sum.rotate_left(5) ^ u64::from_le_bytes(word)).wrapping_mul(0x517c_c1b7_2722_0a95);
    }
    mix(sum)
}

/// The type of events whose seal covers their seqno.
pub const WITH_SEQNO: u16 = 3;
/// The type of events whose writer did not know the seqno in advance. The seal covers 0 in place of the seqno.
pub const WITHOUT_SEQNO: u16 = 2;

/// Fills `payload` for event number `count` of a writer. Returns the event's first three extension words. The fourth
/// word is the [`seal`].
///
/// Most payloads are small, so that writers go round the payload buffer about as fast as round the descriptors. A few
/// payloads are larger than a chunk.
pub fn fill(writer: u64, count: Count, payload: &mut Vec<u8>) -> [u64; 3] {
    fill_up_to(64, writer, count, payload)
}

/// Fills `payload` as [`fill`] does, but most payloads have up to `usual_bytes` bytes.
pub fn fill_up_to(usual_bytes: u64, writer: u64, count: Count, payload: &mut Vec<u8>) -> [u64; 3] {
    let dice = mix(writer << 48 ^ count);
    let bytes = match dice % 1024 {
        0 => 5000 + dice as u32 as usize % 5000,
        1 => 0,
        2..6 => 500 + dice as u32 as usize % 1500,
        _ => 1 + ((dice >> 32) % usual_bytes) as usize,
    };
    payload.clear();
    let mut word = dice;
    while payload.len() < bytes {
        word = word.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(writer << 1 | 1);
        payload.extend_from_slice(&word.to_le_bytes());
    }
    payload.truncate(bytes);
    [writer, count, checksum(payload)]
}

/// Returns the checksum over the seqno (or 0), the type, the payload size and three extension words. The third of
/// these words is the payload's checksum, so the seal covers the whole event.
pub fn seal(seqno: u64, event_type: u16, payload_bytes: usize, words: [u64; 3]) -> u64 {
    let mut bytes = [0; 48];
    let all = [seqno, event_type.into(), payload_bytes as u64, words[0], words[1], words[2]];
    for (to, word) in bytes.chunks_mut(8).zip(all) {
        to.copy_from_slice(&word.to_le_bytes());
    }
    checksum(&bytes)
}

/// The findings of a reader.
#[derive(Clone, Debug, Default)]
pub struct Verdict {
    /// Events that the reader returned.
    pub read: u64,
    /// Events whose descriptor the reader returned, but whose payload had expired.
    pub expired: u64,
    /// Seqnos that were counted as lost.
    pub lost: u64,
    /// Descriptors with a wrong seal. No writer has stored these words as one event.
    pub torn: u64,
    /// Payloads that do not belong to their descriptor.
    pub misattributed: u64,
    /// Events that a reader returned twice, or before an earlier event of the same writer.
    pub disordered: u64,
    /// Seqnos for which a reader would wait for ever. They have no event, and readers do not report them as skipped.
    pub stuck: u64,
    /// Descriptions of the first few faults.
    pub examples: Vec<String>,
    last_counts: Vec<Option<Count>>,
}

impl Verdict {
    /// Checks one event. `payload` is `None` if the reader has reported that the payload has expired.
    pub fn event(&mut self, seqno: u64, event_type: u16, payload_bytes: usize, ext: [u64; 4], payload: Option<&[u8]>) {
        self.read += 1;
        self.expired += u64::from(payload.is_none());
        let words = [ext[0], ext[1], ext[2]];
        let sealed_seqno = if event_type == WITH_SEQNO { seqno } else { 0 };
        if !matches!(event_type, WITH_SEQNO | WITHOUT_SEQNO)
            || ext[3] != seal(sealed_seqno, event_type, payload_bytes, words)
        {
            self.torn += 1;
            self.remember(format!("descriptor {seqno}: type {event_type}, {payload_bytes} bytes, {ext:x?}"));
            return;
        }
        if payload.is_some_and(|payload| payload.len() != payload_bytes || checksum(payload) != ext[2]) {
            self.misattributed += 1;
            self.remember(format!("payload of {seqno}: writer {}, event {}", ext[0], ext[1]));
        }
        let writer = ext[0] as usize;
        if self.last_counts.len() <= writer {
            self.last_counts.resize(writer + 1, None);
        }
        if self.last_counts[writer].is_some_and(|last| last >= ext[1]) {
            self.disordered += 1;
            self.remember(format!("order of {seqno}: writer {writer}, event {} again", ext[1]));
        }
        self.last_counts[writer] = Some(ext[1]);
    }

    fn remember(&mut self, example: String) {
        if self.examples.len() < 5 {
            self.examples.push(example);
        }
    }

    /// Returns the number of faults.
    pub fn wrong(&self) -> u64 {
        self.torn + self.misattributed + self.disordered + self.stuck
    }

    pub fn add(&mut self, other: &Self) {
        self.read += other.read;
        self.expired += other.expired;
        self.lost += other.lost;
        self.torn += other.torn;
        self.misattributed += other.misattributed;
        self.disordered += other.disordered;
        self.stuck += other.stuck;
        self.examples.extend(other.examples.iter().cloned());
    }
}

impl std::fmt::Display for Verdict {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { read, expired, lost, torn, misattributed, disordered, stuck, .. } = self;
        write!(
            f,
            "read={read} expired={expired} lost={lost} torn={torn} misattributed={misattributed} disordered={disordered} \
             stuck={stuck}"
        )
    }
}
