//! The files with the code of processes. Each file is opened while a process has it mapped, and stays open. Names of
//! functions are looked up at the end of the recording, when the path may name another file.

use super::maps::File;
use crate::symbols::build_id;
use eventring::files::FileId;
use eventring_capture::foreign::{MappedFile, open_mapped};
use framehop::ExplicitModuleSectionInfo;
use object::read::elf::ElfFile64;
use object::{Object as _, ObjectSection as _, ObjectSegment as _, ReadCache};
use rustix::fs::fstat;
use std::collections::HashMap;
use std::sync::Arc;

/// The largest numbers of files that are kept open, and of bytes of all their tables.
const FILES_MAX: usize = 1024;
const TABLE_BYTES_MAX: u64 = 1 << 30;

/// A file with code.
pub(crate) struct CodeFile {
    pub(crate) file: std::fs::File,
    pub(crate) id: FileId,
    pub(crate) tables: Option<Tables>,
}

/// What unwinding needs of a file.
pub(crate) struct Tables {
    pub(crate) sections: ExplicitModuleSectionInfo<Arc<[u8]>>,
    /// Place in the file, size and address of each segment.
    pub(crate) segments: Vec<(u64, u64, u64)>,
}

/// The files with the code of all processes. Processes share them.
#[derive(Default)]
pub(crate) struct CodeFiles {
    opened: HashMap<FileId, Arc<CodeFile>>,
    table_bytes: u64,
}

impl CodeFiles {
    /// Opens the file that a process has mapped. Returns `None` if nobody can say which file that is.
    pub(crate) fn open(&mut self, process: u32, mapped: &File) -> Option<Arc<CodeFile>> {
        let is_it = |file: &std::fs::File| {
            let has_id = || !mapped.build_id.is_empty() && build_id(file).starts_with(&mapped.build_id);
            let is_there = || {
                let files = MappedFile::list(process).unwrap_or_default();
                files.iter().any(|there| there.begin == mapped.begin && there.is(file))
            };
            has_id() || is_there()
        };
        let file = open_mapped(process, mapped.begin..mapped.end, &mapped.path, is_it)?;
        let id = FileId::from_stat(&fstat(&file).ok()?);
        match self.opened.get(&id) {
            Some(known) => Some(known.clone()),
            None if self.opened.len() >= FILES_MAX => None,
            None => {
                let tables = Tables::read(&file, TABLE_BYTES_MAX - self.table_bytes);
                self.table_bytes += tables.as_ref().map_or(0, Tables::bytes);
                let opened = Arc::new(CodeFile { file, id, tables });
                self.opened.insert(id, opened.clone());
                Some(opened)
            }
        }
    }
}

impl Tables {
    /// Reads the tables of a file, if they have at most so many bytes.
    fn read(file: &std::fs::File, bytes_max: u64) -> Option<Self> {
        let cache = ReadCache::new(file);
        let elf = ElfFile64::<object::Endianness, _>::parse(&cache).ok()?;
        let section = |name: &str| elf.section_by_name(name);
        let range = |name: &str| {
            let section = section(name)?;
            Some(section.address()..section.address().checked_add(section.size())?)
        };
        let mut left = bytes_max;
        let mut data = |name: &str| {
            let found = section(name)?;
            left = left.checked_sub(found.size())?;
            found.data().ok().map(Arc::<[u8]>::from)
        };
        let sections = ExplicitModuleSectionInfo {
            text_svma: range(".text"),
            text: data(".text"),
            got_svma: range(".got"),
            eh_frame_svma: range(".eh_frame"),
            eh_frame: data(".eh_frame"),
            eh_frame_hdr_svma: range(".eh_frame_hdr"),
            eh_frame_hdr: data(".eh_frame_hdr"),
            ..ExplicitModuleSectionInfo::default()
        };
        let segments =
            elf.segments().map(|segment| (segment.file_range().0, segment.file_range().1, segment.address()));
        Some(Self { sections, segments: segments.collect() })
    }

    fn bytes(&self) -> u64 {
        let sections = [&self.sections.text, &self.sections.eh_frame, &self.sections.eh_frame_hdr];
        sections.into_iter().flatten().map(|section| section.len() as u64).sum()
    }
}
