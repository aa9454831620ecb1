//! The rings of the events. Their files are in the directory of the program's ring, and are removed at the end.

use eventring::reader::{Reader, ReaderError};
use eventring::recorder::{ContentDescription, Recorder, RecorderError, RecorderErrorKind};
use eventring::schema::{EventPayload, EventType};
use std::path::{Path, PathBuf};

/// The memory of a ring, and the least that will do.
const MEMORY: u64 = 64 << 20;
const MEMORY_MIN: u64 = 6 << 20;

pub(super) struct Ring {
    recorder: Recorder,
}

impl Ring {
    /// Makes the ring that is called like `base`, with this ending. It is smaller if there is little memory.
    pub(super) fn make<E: EventType>(base: &Path, ending: &str) -> Result<Self, RecorderError> {
        let mut memory = MEMORY;
        loop {
            let builder = Recorder::builder(ContentDescription::from_event_type::<E>()).config(named(base, ending));
            match builder.numbered(true).memory(memory).prefault(false).build() {
                Err(error) if error.kind() == RecorderErrorKind::NoSpace && memory / 2 >= MEMORY_MIN => memory /= 2,
                made => return Ok(Self { recorder: made? }),
            }
        }
    }

    /// Opens the ring for reading.
    pub(super) fn reader(&self) -> Result<Reader, ReaderError> {
        Reader::open(self.recorder.path().unwrap_or_else(|| unreachable!("the ring has a file")))
    }

    /// Records an event with its own time.
    pub(super) fn record(&self, event: u16, epoch_nanos: u64, fixed: &impl EventPayload, trailing: &[&[u8]]) {
        fixed.with_bytes(|fixed| {
            let bytes = fixed.len() + trailing.iter().map(|part| part.len()).sum::<usize>();
            let Some(mut reserved) = self.recorder.reserve(event, [0; 4], bytes as u64) else { return };
            reserved.set_epoch_nanos(epoch_nanos);
            reserved.append(fixed);
            for part in trailing {
                reserved.append(part);
            }
            reserved.commit();
        });
    }
}

/// Returns the name of a ring beside another one. A size after it (`shop:64MiB`) belongs to the other one.
fn named(base: &Path, ending: &str) -> PathBuf {
    let name = base.file_name().unwrap_or("profile".as_ref()).to_string_lossy();
    let name: String = name.split(':').next().unwrap_or_default().chars().map(plain).collect();
    base.with_file_name(format!("{name}-{ending}"))
}

fn plain(letter: char) -> char {
    if letter.is_ascii_alphanumeric() || "-_.~".contains(letter) { letter } else { '-' }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_of_the_programs_ring() {
        let names = ["shop", "/tmp/x/shop", "shop:64MiB", "a b"].map(|base| named(base.as_ref(), "sched"));
        assert_eq!(names, ["shop-sched", "/tmp/x/shop-sched", "shop-sched", "a-b-sched"].map(PathBuf::from));
    }
}
