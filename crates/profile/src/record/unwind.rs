//! Return addresses from a copy of a stack: by the tables with which the compiler describes stacks (`.eh_frame`), and
//! by frame pointers where there are none.

use super::maps::{File, Maps};
use super::records::RawStack;
use framehop::{
    CacheNative, ExplicitModuleSectionInfo, FrameAddress, MayAllocateDuringUnwind, Module, UnwindRegsNative,
    Unwinder as _, UnwinderNative,
};
use object::read::elf::ElfFile64;
use object::{Object as _, ObjectSection as _, ObjectSegment as _, ReadCache};
use std::collections::HashMap;
use std::sync::Arc;

/// The largest number of frames of a stack.
pub(super) const FRAMES_MAX: usize = 255;
/// The largest numbers of files whose tables are kept, and of bytes of one table.
const FILES_MAX: usize = 1024;
const TABLE_BYTES_MAX: u64 = 256 << 20;

/// What unwinding needs of a file.
struct Tables {
    sections: ExplicitModuleSectionInfo<Arc<[u8]>>,
    /// Place in the file, size and address of each segment.
    segments: Vec<(u64, u64, u64)>,
}

/// The unwinder of each process, with the tables of its files.
#[derive(Default)]
pub(super) struct Unwinders {
    tables: HashMap<Arc<str>, Option<Arc<Tables>>>,
    processes: HashMap<u32, Process>,
    cache: CacheNative<MayAllocateDuringUnwind>,
}

#[derive(Clone)]
struct Process {
    unwinder: UnwinderNative<Arc<[u8]>, MayAllocateDuringUnwind>,
    /// The first addresses of the files that it knows.
    known: HashMap<u64, Arc<str>>,
}

impl Unwinders {
    /// Forgets a process, whose files are others now.
    pub(super) fn clear(&mut self, process: u32) {
        self.processes.remove(&process);
    }

    /// Appends the addresses of a program's frames, the innermost first. Those of callers lie in their calls.
    pub(super) fn unwind(&mut self, process: u32, stack: &RawStack, maps: &Maps, frames: &mut Vec<u64>) {
        let Some((pc, registers)) = registers(&stack.registers) else { return };
        let sp = registers.sp();
        let memory = &stack.memory;
        let mut read = |address: u64| {
            let offset = usize::try_from(address.checked_sub(sp).ok_or(())?).map_err(drop)?;
            let bytes = memory.get(offset..offset.checked_add(8).ok_or(())?).ok_or(())?;
            Ok(u64::from_le_bytes(bytes.try_into().map_err(drop)?))
        };
        let mut frame = FrameAddress::from_instruction_pointer(pc);
        let mut registers = registers;
        let end = frames.len() + FRAMES_MAX;
        loop {
            let address = frame.address_for_lookup();
            frames.push(address);
            self.know(process, address, maps);
            if frames.len() >= end {
                return;
            }
            let Some(known) = self.processes.get(&process) else { return };
            match known.unwinder.unwind_frame(frame, &mut registers, &mut self.cache, &mut read) {
                Ok(Some(caller)) => match FrameAddress::from_return_address(caller) {
                    Some(caller) => frame = caller,
                    None => return,
                },
                _ => return,
            }
        }
    }

    /// Makes the file at an address known.
    fn know(&mut self, process: u32, address: u64, maps: &Maps) {
        let known = self
            .processes
            .entry(process)
            .or_insert_with(|| Process { unwinder: UnwinderNative::new(), known: HashMap::new() });
        let Some(file) = maps.find(process, address) else { return };
        match known.known.get(&file.begin) {
            Some(path) if *path == file.path => return,
            Some(_) => known.unwinder.remove_module(file.begin),
            None => {}
        }
        known.known.insert(file.begin, file.path.clone());
        if self.tables.len() >= FILES_MAX {
            self.tables.clear();
        }
        let tables = self.tables.entry(file.path.clone()).or_insert_with(|| Tables::read(process, &file.path));
        if let Some(module) = tables.as_ref().and_then(|tables| tables.module(file)) {
            known.unwinder.add_module(module);
        }
    }
}

impl Tables {
    /// Reads the tables of a file: from where the process sees it, or from here.
    fn read(process: u32, path: &str) -> Option<Arc<Self>> {
        let there = std::fs::File::open(format!("/proc/{process}/root{path}"));
        let file = ReadCache::new(there.or_else(|_| std::fs::File::open(path)).ok()?);
        let elf = ElfFile64::<object::Endianness, _>::parse(&file).ok()?;
        let section = |name: &str| elf.section_by_name(name);
        let range = |name: &str| section(name).map(|section| section.address()..section.address() + section.size());
        let data = |name: &str| {
            let found = section(name).filter(|section| section.size() <= TABLE_BYTES_MAX)?;
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
        Some(Arc::new(Self { sections, segments: segments.collect() }))
    }

    /// Returns the module of a file at the addresses at which it lies.
    fn module(&self, file: &File) -> Option<Module<Arc<[u8]>>> {
        // A mapping begins at a whole page, where the segment before it may still have its end.
        let holds = |(place, bytes, _): &&(u64, u64, u64)| {
            file.offset < *place + bytes && place - place % rustix::param::page_size() as u64 <= file.offset
        };
        let (place, _, address) = self.segments.iter().filter(holds).max_by_key(|(place, _, _)| *place)?;
        let base = file.begin.wrapping_sub(file.offset).wrapping_add(*place).wrapping_sub(*address);
        Some(Module::new(file.path.to_string(), file.begin..file.end, base, self.sections.clone()))
    }
}

/// Returns the instruction pointer and the registers of a sample.
fn registers(words: &[u64]) -> Option<(u64, UnwindRegsNative)> {
    #[cfg(target_arch = "x86_64")]
    return match words {
        [bp, sp, ip] => Some((*ip, UnwindRegsNative::new(*ip, *sp, *bp))),
        _ => None,
    };
    #[cfg(target_arch = "aarch64")]
    return match words {
        [fp, lr, sp, pc] => Some((*pc, UnwindRegsNative::new(*lr, *sp, *fp))),
        _ => None,
    };
}
