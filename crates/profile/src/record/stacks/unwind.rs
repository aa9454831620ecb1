//! Finds the return addresses in a copy of a stack: by the compiler's unwind tables (`.eh_frame`), or by frame pointers
//! where there are no tables.

use super::code::{CodeFile, CodeFiles};
use super::maps::{File, Maps};
use crate::record::kernel::body::RawStack;
use framehop::{
    CacheNative, FrameAddress, MayAllocateDuringUnwind, Module, UnwindRegsNative, Unwinder as _, UnwinderNative,
};
use std::collections::HashMap;
use std::sync::Arc;

/// The largest number of frames of a stack.
pub(crate) const FRAMES_MAX: usize = 255;
/// The unwinder of each process, with the files of its code.
#[derive(Default)]
pub(crate) struct Unwinders {
    files: CodeFiles,
    processes: HashMap<u32, Process>,
    cache: CacheNative<MayAllocateDuringUnwind>,
}

#[derive(Clone)]
struct Process {
    unwinder: UnwinderNative<Arc<[u8]>, MayAllocateDuringUnwind>,
    /// The files that it knows, by their first addresses, with their paths.
    known: HashMap<u64, (Arc<str>, Option<Arc<CodeFile>>)>,
}

impl Unwinders {
    /// Forgets a process, whose files are others now.
    pub(crate) fn clear(&mut self, process: u32) {
        self.processes.remove(&process);
    }

    /// Appends the addresses of a program's frames, the innermost first. Those of callers lie in their calls.
    pub(crate) fn unwind(&mut self, process: u32, stack: &RawStack, maps: &Maps, frames: &mut Vec<u64>) {
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
            Some((path, _)) if *path == file.path => return,
            Some(_) => known.unwinder.remove_module(file.begin),
            None => {}
        }
        let opened = self.files.open(process, file);
        if let Some(module) = opened.as_ref().and_then(|opened| module(opened, file)) {
            known.unwinder.add_module(module);
        }
        known.known.insert(file.begin, (file.path.clone(), opened));
    }

    /// Returns the open file in which an address lies, if a stack has had an address in it before.
    pub(crate) fn opened(&self, process: u32, file: &File) -> Option<Arc<CodeFile>> {
        self.processes.get(&process)?.known.get(&file.begin)?.1.clone()
    }
}

/// Returns the module of a file at the addresses at which it lies.
fn module(opened: &CodeFile, file: &File) -> Option<Module<Arc<[u8]>>> {
    let tables = opened.tables.as_ref()?;
    // A mapping begins at a whole page, where the segment before it may still have its end.
    let holds = |(place, bytes, _): &&(u64, u64, u64)| {
        file.offset < place.saturating_add(*bytes) && place - place % rustix::param::page_size() as u64 <= file.offset
    };
    let (place, _, address) = tables.segments.iter().filter(holds).max_by_key(|(place, _, _)| *place)?;
    let base = file.begin.wrapping_sub(file.offset).wrapping_add(*place).wrapping_sub(*address);
    Some(Module::new(file.path.to_string(), file.begin..file.end, base, tables.sections.clone()))
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
