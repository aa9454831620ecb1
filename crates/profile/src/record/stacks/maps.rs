//! The files that are mapped into a running process.

pub(crate) use crate::maps::{File, Maps};

use crate::maps::PROCESSES_MAX;
use crate::record::kernel::body::Mapped;
use crate::schema::Mapping;
use crate::symbols::build_id;
use eventring_capture::foreign::MappedFile;
use std::ops::Range;

impl Maps {
    /// Calls `tell` with all files.
    pub(crate) fn each(&self, mut tell: impl FnMut(Mapping, &str)) {
        for (process, files) in &self.processes {
            for file in files.values() {
                tell(mapping(*process, file.begin..file.end, file.offset, &file.build_id), &file.path);
            }
        }
    }

    /// Gives a forked process what its parent has.
    pub(crate) fn fork(&mut self, parent: u32, child: u32) {
        if let Some(files) = self.processes.get(&parent).cloned()
            && self.processes.len() < PROCESSES_MAX
        {
            self.processes.insert(child, files);
        }
    }

    /// Forgets the files of a process.
    pub(crate) fn clear(&mut self, process: u32) {
        self.processes.remove(&process);
    }
}

/// Makes the event of a file.
pub(crate) fn mapping(process_id: u32, place: Range<u64>, offset: u64, id: &[u8]) -> Mapping {
    let mut build_id = [0; 20];
    let bytes = id.len().min(build_id.len());
    build_id[..bytes].copy_from_slice(&id[..bytes]);
    Mapping { process_id, build_id_bytes: bytes as u32, begin: place.start, end: place.end, offset, build_id }
}

/// Returns the files that are mapped with code into a process that runs.
pub(crate) fn of_process(process: u32) -> Vec<Mapped> {
    let files = MappedFile::list(process).unwrap_or_default();
    let files = files.into_iter().filter(|file| file.is_code && file.path.starts_with('/'));
    files.map(|file| mapped(process, file)).collect()
}

fn mapped(process: u32, file: MappedFile) -> Mapped {
    let mut build_id = file.open(process).map(|opened| build_id(&opened)).unwrap_or_default();
    build_id.truncate(20);
    let MappedFile { begin, end, offset, path, .. } = file;
    Mapped { process, begin, end, offset, build_id, path: path.into_bytes() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_forked_process_has_the_files_of_its_parent() {
        let path = b"/usr/lib/lib a.so".to_vec();
        let file = Mapped { process: 7, begin: 0x7f00, end: 0x7f80, offset: 0, build_id: Vec::new(), path };
        let mut maps = Maps::default();
        assert!(maps.add(&file));
        maps.fork(7, 8);
        maps.clear(7);
        assert!(maps.find(8, 0x7f7f).is_some() && maps.find(7, 0x7f10).is_none());
    }
}
