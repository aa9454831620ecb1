//! The files that are mapped into a process that runs.

pub(super) use crate::maps::{File, Maps};

use super::records::Mapped;
use crate::maps::PROCESSES_MAX;
use crate::schema::Mapping;
use std::ops::Range;

impl Maps {
    /// Calls `tell` with all files.
    pub(super) fn each(&self, mut tell: impl FnMut(Mapping, &str)) {
        for (process, files) in &self.processes {
            for file in files.values() {
                tell(mapping(*process, file.begin..file.end, file.offset, &file.build_id), &file.path);
            }
        }
    }

    /// Gives a forked process what its parent has.
    pub(super) fn fork(&mut self, parent: u32, child: u32) {
        if let Some(files) = self.processes.get(&parent).cloned()
            && self.processes.len() < PROCESSES_MAX
        {
            self.processes.insert(child, files);
        }
    }

    /// Forgets the files of a process.
    pub(super) fn clear(&mut self, process: u32) {
        self.processes.remove(&process);
    }
}

/// Makes the event of a file.
pub(super) fn mapping(process_id: u32, place: Range<u64>, offset: u64, id: &[u8]) -> Mapping {
    let mut build_id = [0; 20];
    let bytes = id.len().min(build_id.len());
    build_id[..bytes].copy_from_slice(&id[..bytes]);
    Mapping { process_id, build_id_bytes: bytes as u32, begin: place.start, end: place.end, offset, build_id }
}

/// Returns the files that are mapped with code into a process that runs.
pub(super) fn of_process(process: u32) -> Vec<Mapped> {
    let text = std::fs::read(format!("/proc/{process}/maps")).unwrap_or_default();
    text.split(|byte| *byte == b'\n').filter_map(|line| mapped(process, line)).collect()
}

/// Reads a line like `7f00-7f80 r-xp 00001000 fe:00 1234   /usr/lib/libc.so.6`.
fn mapped(process: u32, line: &[u8]) -> Option<Mapped> {
    let line = String::from_utf8_lossy(line);
    let mut words = line.splitn(6, ' ');
    let (begin, end) = words.next()?.split_once('-')?;
    let rights = words.next()?;
    let offset = words.next()?;
    let path = words.nth(2)?.trim_start().to_owned();
    let number = |text: &str| u64::from_str_radix(text, 16).ok();
    if !rights.contains('x') || !path.starts_with('/') {
        return None;
    }
    let build_id = build_id(&path);
    let (begin, end, offset) = (number(begin)?, number(end)?, number(offset)?);
    Some(Mapped { process, begin, end, offset, build_id, path: path.into_bytes() })
}

fn build_id(path: &str) -> Vec<u8> {
    let read = blazesym::helper::read_elf_build_id(path).ok().flatten();
    let mut id = read.map(|id| id.to_vec()).unwrap_or_default();
    id.truncate(20);
    id
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_with_code_of_a_file_is_a_mapping_and_others_are_none() {
        let file = mapped(7, b"7f00-7f80 r-xp 00001000 fe:00 1234                     /usr/lib/lib a.so").unwrap();
        assert_eq!(
            (file.begin, file.end, file.offset, &file.path[..]),
            (0x7f00, 0x7f80, 0x1000, &b"/usr/lib/lib a.so"[..])
        );
        assert!(mapped(7, b"7f80-7f90 rw-p 00000000 00:00 0 ").is_none());
        let mut maps = Maps::default();
        assert!(maps.add(&file));
        maps.fork(7, 8);
        maps.clear(7);
        assert!(maps.find(8, 0x7f7f).is_some() && maps.find(7, 0x7f10).is_none());
    }
}
