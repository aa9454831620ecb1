//! The files that are mapped at the addresses of a process.

use std::collections::BTreeMap;
use std::sync::Arc;

/// A file that was mapped with code.
pub(crate) struct Mapped {
    pub(crate) process: u32,
    pub(crate) begin: u64,
    pub(crate) end: u64,
    pub(crate) offset: u64,
    pub(crate) build_id: Vec<u8>,
    pub(crate) path: Vec<u8>,
}

/// The largest numbers of processes, and of files of one process.
pub(crate) const PROCESSES_MAX: usize = 1024;
const FILES_MAX: usize = 8192;

/// A file with code at some addresses.
#[derive(Clone, Debug)]
pub(crate) struct File {
    pub(crate) begin: u64,
    pub(crate) end: u64,
    pub(crate) offset: u64,
    pub(crate) path: Arc<str>,
    pub(crate) build_id: Box<[u8]>,
}

impl File {
    /// Returns the place in the file of an address.
    pub(crate) fn place(&self, address: u64) -> u64 {
        (address - self.begin).wrapping_add(self.offset)
    }
}

/// The files of all processes.
#[derive(Debug, Default)]
pub(crate) struct Maps {
    pub(crate) processes: BTreeMap<u32, BTreeMap<u64, File>>,
}

impl Maps {
    /// Adds a file. Returns false if there are too many, or if it is no file.
    pub(crate) fn add(&mut self, mapped: &Mapped) -> bool {
        if self.processes.len() >= PROCESSES_MAX && !self.processes.contains_key(&mapped.process) {
            return false;
        }
        let files = self.processes.entry(mapped.process).or_default();
        // What lay there before lies there no more.
        let covered = |file: &File| file.begin < mapped.end && mapped.begin < file.end;
        files.retain(|_, file| !covered(file));
        let path = String::from_utf8_lossy(&mapped.path);
        if files.len() >= FILES_MAX || !path.starts_with('/') || path.starts_with("//anon") {
            return false;
        }
        let path = path.strip_suffix(" (deleted)").unwrap_or(&path);
        files.insert(
            mapped.begin,
            File {
                begin: mapped.begin,
                end: mapped.end,
                offset: mapped.offset,
                path: path.into(),
                build_id: mapped.build_id.as_slice().into(),
            },
        );
        true
    }

    /// Returns the file at an address. A forked process that has said nothing has the files of another one.
    pub(crate) fn find_in_any(&self, process: u32, address: u64) -> Option<&File> {
        let others = || self.processes.keys().filter(|_| !self.processes.contains_key(&process));
        self.find(process, address).or_else(|| others().find_map(|other| self.find(*other, address)))
    }

    /// Returns the file at an address.
    pub(crate) fn find(&self, process: u32, address: u64) -> Option<&File> {
        let (_, file) = self.processes.get(&process)?.range(..=address).next_back()?;
        (address < file.end).then_some(file)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn code_of_files_is_found_at_its_addresses() {
        let path = b"/usr/lib/lib a.so".to_vec();
        let file = Mapped { process: 7, begin: 0x7f00, end: 0x7f80, offset: 0x1000, build_id: vec![1], path };
        let mut maps = Maps::default();
        assert!(maps.add(&file));
        let found = maps.find(7, 0x7f10).unwrap();
        assert_eq!((&*found.path, found.place(0x7f10)), ("/usr/lib/lib a.so", 0x1010));
        assert!(maps.find(7, 0x7f80).is_none() && maps.find(9, 0x7f10).is_none());
        assert!(maps.find_in_any(9, 0x7f10).is_some());
        assert!(!maps.add(&Mapped { path: b"//anon".to_vec(), ..file }));
        assert!(maps.find(7, 0x7f10).is_none(), "something else lies there now");
    }
}
