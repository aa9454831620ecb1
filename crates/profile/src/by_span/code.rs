//! Stacks of the program: their addresses, the files with their code, and the names of their functions.

use crate::frame::Frame;
use crate::maps::{Mapped, Maps};
use crate::schema::{Mapping, Resolved, Sample, SampleKind, Stack, Stacks};
use eventring::reader::Descriptor;
use eventring::schema::{EventPayload as _, EventType as _};
use std::collections::HashMap;
use std::sync::Arc;

/// The largest numbers of addresses in all stacks, and of addresses that have a place or a name.
const ADDRESSES_MAX: usize = 1 << 23;
const NAMED_MAX: usize = 1 << 19;

/// A stack of a recording.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct StackKey {
    /// The index of the process that has recorded it.
    pub process_index: usize,
    /// Its number there; 0 for none.
    pub stack_id: u64,
}

/// The stacks of a recording.
#[derive(Debug, Default)]
pub struct CodeStacks {
    stacks: HashMap<StackKey, CodeStack>,
    /// The addresses in all stacks.
    addresses: usize,
    /// The files of the processes that each recording process has followed.
    maps: HashMap<usize, Maps>,
    places: HashMap<Address, Place>,
    files: Vec<CodeFile>,
    known_files: HashMap<(Arc<str>, Box<[u8]>), u32>,
    /// The functions at an address, the innermost inlined one first.
    names: HashMap<Address, Vec<Arc<str>>>,
    name_bytes: u64,
}

/// An address in the stacks of one recording process.
type Address = (usize, u64);

#[derive(Debug)]
struct CodeStack {
    addresses: Box<[u64]>,
    kernel_frames: usize,
    /// The process of the first thread that was at it; 0 until then, or if it is not known.
    process: u32,
    is_placed: bool,
}

#[derive(Clone, Copy, Debug)]
struct Place {
    file: u32,
    offset: u64,
}

#[derive(Debug)]
struct CodeFile {
    path: Arc<str>,
    #[cfg_attr(
        not(all(feature = "symbols", target_os = "linux", not(eventring_unsupported))),
        allow(dead_code, reason = "it is for symbols")
    )]
    build_id: Box<[u8]>,
}

impl Sample {
    pub(super) fn is_on_processor(&self) -> bool {
        self.kind == SampleKind::OnProcessor
    }
}

/// Decodes a sample, if the event is one.
pub(super) fn sample(descriptor: &Descriptor, payload: &[u8]) -> Option<Sample> {
    let is_sample = matches!(Stacks::from_code(descriptor.event_type)?, Stacks::Sample);
    is_sample.then(|| Sample::decode(payload).ok()).flatten().map(|(sample, _)| sample)
}

impl CodeStacks {
    /// Takes an event of a ring of stacks that is no sample.
    pub fn event(&mut self, process_index: usize, descriptor: &Descriptor, payload: &[u8]) {
        self.decode(process_index, descriptor, payload);
    }

    fn decode(&mut self, process_index: usize, descriptor: &Descriptor, payload: &[u8]) -> Option<()> {
        match Stacks::from_code(descriptor.event_type)? {
            Stacks::Sample => {}
            Stacks::Stack => {
                let (stack, bytes) = Stack::decode(payload).ok()?;
                let (words, _) = bytes.as_chunks::<8>();
                let words = &words[..words.len().min(stack.frames as usize)];
                if self.addresses + words.len() > ADDRESSES_MAX {
                    return None;
                }
                self.addresses += words.len();
                let addresses = words.iter().map(|word| u64::from_le_bytes(*word)).collect();
                let key = StackKey { process_index, stack_id: stack.stack_id };
                let kernel_frames = stack.kernel_frames as usize;
                self.stacks.insert(key, CodeStack { addresses, kernel_frames, process: 0, is_placed: false });
            }
            Stacks::Mapping => {
                let (mapping, path) = Mapping::decode(payload).ok()?;
                let build_id = mapping.build_id.get(..mapping.build_id_bytes as usize)?.to_vec();
                let Mapping { process_id: process, begin, end, offset, .. } = mapping;
                let mapped = Mapped { process, begin, end, offset, build_id, path: path.to_vec() };
                self.maps.entry(process_index).or_default().add(&mapped);
            }
            Stacks::Resolved => {
                let (resolved, texts) = Resolved::decode(payload).ok()?;
                let function = String::from_utf8_lossy(texts.get(..resolved.function_bytes as usize)?);
                self.name((process_index, resolved.address), &function);
            }
        }
        Some(())
    }

    fn name(&mut self, address: Address, function: &str) {
        if self.names.len() < NAMED_MAX || self.names.contains_key(&address) {
            self.name_bytes += 64 + function.len() as u64;
            self.names.entry(address).or_default().push(function.into());
        }
    }

    /// Finds the files in which the addresses of a stack lie now. `process` is that of a thread which was at the stack.
    pub fn place(&mut self, key: StackKey, process: u32) {
        let (Some(stack), Some(maps)) = (self.stacks.get_mut(&key), self.maps.get(&key.process_index)) else { return };
        if std::mem::replace(&mut stack.is_placed, true) {
            return;
        }
        stack.process = process;
        for address in stack.addresses.iter().skip(stack.kernel_frames) {
            let named = (key.process_index, *address);
            if self.places.len() >= NAMED_MAX || self.places.contains_key(&named) {
                continue;
            }
            let Some(found) = maps.find_in_any(process, *address) else { continue };
            let file = *self.known_files.entry((found.path.clone(), found.build_id.clone())).or_insert_with(|| {
                self.files.push(CodeFile { path: found.path.clone(), build_id: found.build_id.clone() });
                self.files.len() as u32 - 1
            });
            self.places.insert(named, Place { file, offset: found.place(*address) });
        }
    }

    /// Looks up the names that the recording does not have, in the files with the code: those that are still there,
    /// with the same build id. The kernel's addresses are not looked up, because another kernel may run now.
    #[cfg(all(feature = "symbols", target_os = "linux", not(eventring_unsupported)))]
    pub fn resolve(&mut self) {
        self.place_rest();
        let mut wanted: Vec<Vec<(Address, u64)>> = self.files.iter().map(|_| Vec::new()).collect();
        for (address, place) in self.places.iter().filter(|(address, _)| !self.names.contains_key(address)) {
            wanted[place.file as usize].push((*address, place.offset));
        }
        for (file, mut wanted) in wanted.into_iter().enumerate().filter(|(_, wanted)| !wanted.is_empty()) {
            let CodeFile { path, build_id } = &self.files[file];
            let Some(file) = crate::symbols::with_build_id(path, build_id) else { continue };
            wanted.sort_unstable();
            let offsets: Vec<u64> = wanted.iter().map(|(_, offset)| *offset).collect();
            for ((address, _), names) in wanted.iter().zip(crate::symbols::of_file(&file, &offsets)) {
                names.iter().for_each(|name| self.name(*address, &name.function));
            }
        }
    }

    /// Looks up no names: this program was built without the symbols of files.
    #[cfg(not(all(feature = "symbols", target_os = "linux", not(eventring_unsupported))))]
    pub fn resolve(&mut self) {
        self.place_rest();
    }

    /// Finds the files of addresses whose file was told later than they.
    fn place_rest(&mut self) {
        let placed = self.stacks.iter_mut().filter(|(_, stack)| stack.is_placed);
        let mut again: Vec<(StackKey, u32)> = placed
            .map(|(key, stack)| {
                stack.is_placed = false;
                (*key, stack.process)
            })
            .collect();
        again.sort_unstable();
        again.into_iter().for_each(|(key, process)| self.place(key, process));
    }

    /// Returns the frames of a stack, the outermost first. Those of the kernel come after those of the program. There
    /// are none if the stack is not known.
    #[must_use]
    pub fn frames(&self, key: StackKey) -> Vec<Frame> {
        let Some(stack) = self.stacks.get(&key) else { return Vec::new() };
        let mut frames = Vec::with_capacity(stack.addresses.len());
        for (index, address) in stack.addresses.iter().enumerate().rev() {
            let (is_kernel, named) = (index < stack.kernel_frames, (key.process_index, *address));
            let place = self.places.get(&named).filter(|_| !is_kernel);
            let (path, offset) = match place {
                Some(Place { file, offset }) => (self.files[*file as usize].path.clone(), *offset),
                None => ("".into(), *address),
            };
            let frame = |name: Option<Arc<str>>| Frame::new(name, &path, offset, is_kernel);
            match self.names.get(&named) {
                Some(names) => frames.extend(names.iter().rev().map(|name| frame(Some(name.clone())))),
                None => frames.push(frame(None)),
            }
        }
        frames
    }

    pub(super) fn kept_bytes(&self) -> u64 {
        let counted = [(self.addresses, 8), (self.stacks.len(), 96), (self.places.len(), 80), (self.names.len(), 96)];
        counted.iter().map(|(count, bytes)| (count * bytes) as u64).fold(self.name_bytes, u64::saturating_add)
    }
}
