//! A block of an archive.

use super::Blocks;
use super::news::BlockUpdate;
use crate::commit::Update;
use crate::history::{BlockArchive, EventcapFile};
use crate::source::ExecEvents;
use crate::values::Block;
use crate::wanted::Wanted;
use eventring_capture::{CaptureError, CaptureErrorKind};
use std::sync::Arc;

impl BlockArchive {
    /// Reads the block with this number. Returns `None` if the archive does not have it.
    ///
    /// # Errors
    /// Its file is damaged, cannot be read, has a schema that nobody knows, or holds another block.
    pub fn block(&self, number: u64, wanted: Wanted) -> Result<Option<Arc<Block>>, CaptureError> {
        let path = self.path_of(number);
        let file = match EventcapFile::open(&path) {
            Ok(file) => file,
            Err(error) if error.kind() == CaptureErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error),
        };
        let of_file = |kind, message: String| CaptureError::new(kind, message).at(&path);
        let events = ExecEvents::of_eventcap(file);
        let events = events.map_err(|error| of_file(CaptureErrorKind::WrongSchema, error.to_string()))?;
        let mut blocks = Blocks::of_events(events, wanted);
        let mut found = None;
        for update in blocks.by_ref() {
            if let BlockUpdate::Changed(Update { block: Some(block), is_new: true, .. }) = update
                && block.number() == number
            {
                found.get_or_insert(block);
            }
        }
        if let Some(problem) = blocks.file_problems().into_iter().next() {
            return Err(CaptureError::new(CaptureErrorKind::Damaged, problem));
        }
        match found {
            Some(block) => Ok(Some(block)),
            None => Err(of_file(
                CaptureErrorKind::Damaged,
                format!("it does not hold block {number}; archive the block again"),
            )),
        }
    }
}
