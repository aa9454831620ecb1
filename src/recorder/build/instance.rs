//! The file of a ring with a name, and the names of further instances of a program.

use super::RecorderBuilder;
use crate::clock::Clock;
use crate::layout::Geometry;
use crate::recorder::error::{RecorderError, RecorderErrorKind};
use crate::recorder::old_shards;
use crate::ring::memory::MappedMemory;
use crate::shm;
use std::path::Path;
use std::time::Instant;

/// The largest number of an instance. A program that is started without end must not search without end.
const INSTANCES_MAX: u32 = 999;

impl RecorderBuilder {
    /// Makes the ring's file. If another living process or another user owns the name, and the ring is numbered, makes
    /// a file with the lowest number whose name is free: `shop~2`, `shop~3` …
    pub(super) fn make_file(
        &self,
        name: &shm::RingName,
        geometry: Geometry,
        clock: &'static Clock,
    ) -> Result<(shm::OwnedRingFile, MappedMemory), RecorderError> {
        let directories = shm::RingDirectories::from_environment();
        // The owners of all names together are waited for no longer than that of one.
        let start = Instant::now();
        let mut number = 1;
        loop {
            let numbered = if number == 1 { Ok(name.clone()) } else { name.with_suffix(&format!("~{number}")) };
            let place = directories.location_for_writing(&numbered?);
            let owner_timeout = shm::OWNER_TIMEOUT.saturating_sub(start.elapsed());
            let options = shm::CreateOptions { owner_timeout, ..self.options };
            let initialise = |file: &shm::UnpublishedFile<'_>| self.initialise(file, geometry, clock);
            match shm::create(&place, geometry.file_bytes(), &options, initialise) {
                Err(error) if self.takes_next_name(&error, &place.path) && number < INSTANCES_MAX => number += 1,
                made => {
                    if self.shard.index == 0 && made.is_ok() {
                        old_shards::remove(&place.path);
                    }
                    return made;
                }
            }
        }
    }

    /// Returns true if the next name may be tried after this error about the file at `path`. A shard has the name of
    /// its recorder and no other.
    fn takes_next_name(&self, error: &RecorderError, path: &Path) -> bool {
        let is_taken = match error.kind() {
            // A second recorder of this process with the same name is a mistake in the program.
            RecorderErrorKind::AlreadyOwned { pid } => pid != Some(std::process::id()),
            RecorderErrorKind::PermissionDenied => shm::is_of_another_user(path),
            _ => false,
        };
        is_taken && self.is_numbered && self.shard_path.is_none()
    }
}
