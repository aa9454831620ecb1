//! The content of tables of the present at the end of a capture.

use crate::error::{CaptureError, CaptureErrorKind};
use crate::format::block;
use crate::format::header::{BlockKind, BlockRef};
use crate::read::file::CaptureFile;
use eventring::now::Present;
use std::collections::BTreeMap;

/// What the tables of the present of a recorder showed at the end of a capture.
#[derive(Debug)]
pub struct CapturedPresent {
    /// The index of the ring that is the recorder's shard 0.
    pub ring: u32,
    /// The time, in nanoseconds since the epoch. The cells were read within the next moment.
    pub epoch_nanos: u64,
    /// What the tables showed.
    pub present: Present,
}

impl CaptureFile {
    /// Returns what the tables of the present showed at the end of the capture, by the index of the recorder's shard 0:
    /// those of recorders that have tables and recorded nothing after it. There are none if a part of the capture is
    /// selected, or if it was made with a filter.
    ///
    /// # Errors
    /// The capture is damaged, or cannot be read.
    pub fn presents(&self) -> Result<Vec<CapturedPresent>, CaptureError> {
        let mut last: BTreeMap<u32, (&Self, &BlockRef)> = BTreeMap::new();
        if self.choice.is_some() {
            return Ok(Vec::new());
        }
        for file in self.all_files() {
            let blocks = file.blocks.iter().filter(|block| block.header.kind == BlockKind::Present);
            for block in blocks.filter(|block| block.header.ring < file.place.rings) {
                last.insert(file.place.first + block.header.ring, (file, block));
            }
        }
        let is_last = |ring: u32, epoch_nanos: u64| {
            let of_recorder = |(index, its): (u32, &crate::format::ring::CapturedRing)| its.shard0(index) == ring;
            let mut shards = (0..).zip(&self.rings).filter(|ring| of_recorder(*ring));
            shards.all(|(index, _)| self.last_nanos_of_all(index) <= epoch_nanos)
        };
        let last = last.into_iter().filter(|(ring, (_, block))| is_last(*ring, block.header.last_nanos));
        last.map(|(ring, (file, block))| {
            let image = block::content(&file.file, block)?;
            let present = Present::of_image(&image).ok_or_else(|| {
                let message =
                    "what it says of open spans and tasks is damaged; copy the file anew from where it was made";
                CaptureError::new(CaptureErrorKind::Damaged, message)
            })?;
            Ok(CapturedPresent { ring, epoch_nanos: block.header.last_nanos, present })
        })
        .collect()
    }
}
