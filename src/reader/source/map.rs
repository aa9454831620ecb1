//! Mapping a ring's file, with a check of its header.

use super::Source;
#[cfg(feature = "snapshot")]
use super::decompress::decompress;
use super::header::read_header;
use super::options::ReaderOptions;
use crate::layout::limits::HEADER_SECTION_BYTES;
use crate::reader::end::SignOfLife;
use crate::reader::error::{ReaderError, ReaderErrorKind};
use crate::reader::info;
use crate::ring::memory::MappedMemory;
use crate::shm;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

/// Default of [`ReaderOptions::snapshot_bytes_max`].
#[cfg(feature = "snapshot")]
const SNAPSHOT_BYTES_MAX: u64 = 8 << 30;

impl ReaderOptions {
    /// Maps a file that was opened by name. If it is a zstd frame, maps the image that the frame holds.
    pub(in crate::reader) fn map_file(&self, file: shm::RingFile, path: &Path) -> Result<Source, ReaderError> {
        let mapped = if starts_as_zstd(&file) { self.map_snapshot(&file, path) } else { self.map_ring(file) };
        mapped.map_err(|error| error.at(path))
    }

    pub(in crate::reader) fn map_descriptor(&self, descriptor: std::fs::File) -> Result<Source, ReaderError> {
        self.map_ring(shm::RingFile::from_descriptor(descriptor).map_err(ReaderError::shm)?)
    }

    fn map_ring(&self, file: shm::RingFile) -> Result<Source, ReaderError> {
        let file_id = file.id();
        self.map(file, file_id, None)
    }

    #[cfg(feature = "snapshot")]
    fn map_snapshot(&self, file: &shm::RingFile, path: &Path) -> Result<Source, ReaderError> {
        let bytes_max = self.snapshot_bytes_max.unwrap_or(SNAPSHOT_BYTES_MAX);
        let image = decompress(file.descriptor(), bytes_max, self.is_header_enough)?;
        let image = shm::RingFile::from_descriptor(image).map_err(ReaderError::shm)?;
        self.map(image, file.id(), Some(path.to_path_buf()))
    }

    #[cfg(not(feature = "snapshot"))]
    fn map_snapshot(&self, _: &shm::RingFile, _: &Path) -> Result<Source, ReaderError> {
        Err(ReaderError::new(
            ReaderErrorKind::Unsupported,
            "the file is a zstd-compressed snapshot, and this program was built without the feature `snapshot`; \
             decompress it first, or enable the feature",
        ))
    }

    /// Maps the file, and checks its header.
    fn map(&self, file: shm::RingFile, file_id: shm::FileId, saved_as: Option<PathBuf>) -> Result<Source, ReaderError> {
        let (fixed, geometry, has_extension) = read_header(&file)?;
        let sections = shm::Sections {
            header_bytes: HEADER_SECTION_BYTES,
            descriptor_bytes: geometry.descriptor_section_bytes(),
            payload_bytes: geometry.payload_buf_bytes(),
            context_bytes: geometry.context_area_bytes(),
        };
        // The image of a snapshot is mapped as a whole, with its holes. A load from a mapped hole takes memory, at most
        // the size of the image. This size was checked.
        let options = shm::MapOptions { map_holes: saved_as.is_some(), ..shm::MapOptions::reader() };
        let mapping = shm::Mapping::map(file.descriptor(), sections, options).map_err(ReaderError::shm)?;
        // The content type and schema are checked only after the mapping, because the mapping checks the file's
        // length. So the error for a truncated ring says that it is truncated.
        let mut memory = MappedMemory::new(mapping, geometry, has_extension).ok_or_else(|| {
            ReaderError::new(ReaderErrorKind::BadHeader, "the mapped sections differ from the header")
        })?;
        let text = || info::schema_text(&memory);
        let resolution = self.check_content(fixed.content_type, fixed.schema_hash, text)?;
        if resolution.is_some() {
            memory.switch_fast_paths_off();
        }
        let source = Source {
            memory,
            resolution,
            file,
            file_id,
            saved_as,
            opened_as: None,
            #[cfg(all(target_os = "linux", not(eventring_unsupported)))]
            served_by: None,
            #[cfg(all(target_os = "linux", not(eventring_unsupported)))]
            held_by: None,
            was_awaited: false,
            finished: OnceLock::new(),
            sign_of_life: SignOfLife { copied_epoch_nanos: self.copied_epoch_nanos, ..SignOfLife::default() },
        };
        source.state();
        Ok(source)
    }
}

fn starts_as_zstd(file: &shm::RingFile) -> bool {
    let mut magic = [0; 4];
    matches!(file.read_at(&mut magic, 0), Ok(4)) && magic == [0x28, 0xb5, 0x2f, 0xfd]
}
