//! Names of addresses: those of the kernel, and those of files by their symbols and their debug information.

use super::code::CodeFile;
use super::maps::{File, Maps};
use super::unwind::Unwinders;
use crate::frame::Frame;
use crate::record::rings::Ring;
use crate::record::stacks::{Place, Stacks};
use crate::schema::{Resolved, Stacks as Event};
use crate::symbols::{Name, of_file, of_kernel};
use eventring::files::FileId;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// A file, and the addresses in it with their places.
type InFile<'c> = (&'c CodeFile, Vec<(u64, u64)>);

/// Records the names of all addresses in stacks. Returns how many it has recorded.
pub(crate) fn record(stacks: &Stacks, ring: &Ring, epoch_nanos: u64) -> u64 {
    let mut kernel: Vec<u64> = Vec::new();
    let mut files: BTreeMap<FileId, InFile<'_>> = BTreeMap::new();
    for (address, place) in stacks.places().iter().collect::<BTreeMap<_, _>>() {
        match place {
            Place::Kernel => kernel.push(*address),
            Place::File(Some(file), offset) => {
                files.entry(file.id).or_insert_with(|| (file, Vec::new())).1.push((*address, *offset));
            }
            Place::File(None, _) => {}
        }
    }
    let mut count = 0;
    let mut record = |addresses: &[u64], found: Vec<Vec<Name>>| {
        for (address, names) in addresses.iter().zip(found) {
            for Name { function, file, line } in names {
                let resolved = Resolved { address: *address, line, function_bytes: function.len() as u32 };
                ring.record(Event::Resolved as u16, epoch_nanos, &resolved, &[function.as_bytes(), file.as_bytes()]);
                count += 1;
            }
        }
    };
    record(&kernel, of_kernel(&kernel));
    for (file, places) in files.into_values() {
        let (addresses, offsets): (Vec<u64>, Vec<u64>) = places.into_iter().unzip();
        record(&addresses, of_file(&file.file, &offsets));
    }
    count
}

/// Returns the frames at each of these addresses of a program that runs, with the functions that are inlined there.
/// Each address is one of a stack that `unwinders` have unwound.
pub(crate) fn names_of(
    addresses: BTreeSet<u64>,
    process: u32,
    files: &Maps,
    unwinders: &Unwinders,
) -> BTreeMap<u64, Vec<Frame>> {
    let nowhere: Arc<str> = "".into();
    let mut found = BTreeMap::new();
    let mut in_files: BTreeMap<u64, (&File, Vec<u64>)> = BTreeMap::new();
    for address in addresses {
        match files.find(process, address) {
            Some(file) => in_files.entry(file.begin).or_insert((file, Vec::new())).1.push(address),
            None => _ = found.insert(address, vec![Frame::new(None, &nowhere, address, false)]),
        }
    }
    for (file, addresses) in in_files.into_values() {
        let places: Vec<u64> = addresses.iter().map(|address| file.place(*address)).collect();
        let opened = unwinders.opened(process, file);
        let mut names = opened.map(|opened| of_file(&opened.file, &places)).unwrap_or_default().into_iter();
        for (address, place) in addresses.into_iter().zip(places) {
            let frame = |name: Option<Arc<str>>| Frame::new(name, &file.path, place, false);
            let named = names.next().unwrap_or_default();
            let frames: Vec<Frame> = named.iter().map(|name| frame(Some(name.function.as_str().into()))).collect();
            found.insert(address, if frames.is_empty() { vec![frame(None)] } else { frames });
        }
    }
    found
}
