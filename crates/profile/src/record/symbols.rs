//! Names of addresses: those of the kernel, and those of files by their symbols and their debug information.

use super::maps::Maps;
use super::rings::Ring;
use super::stacks::{Place, Stacks};
use crate::frame::Frame;
use crate::schema::{Resolved, Stacks as Event};
use crate::symbols::{Name, of_file, of_kernel};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Records the names of all addresses in stacks. Returns how many it has recorded.
pub(super) fn record(stacks: &Stacks, ring: &Ring, epoch_nanos: u64) -> u64 {
    let mut kernel: Vec<u64> = Vec::new();
    let mut files: BTreeMap<Arc<str>, Vec<(u64, u64)>> = BTreeMap::new();
    for (address, place) in stacks.places().iter().collect::<BTreeMap<_, _>>() {
        match place {
            Place::Kernel => kernel.push(*address),
            Place::File(path, offset) => files.entry(path.clone()).or_default().push((*address, *offset)),
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
    for (path, places) in files {
        let (addresses, offsets): (Vec<u64>, Vec<u64>) = places.into_iter().unzip();
        record(&addresses, of_file(&path, &offsets));
    }
    count
}

/// Returns the frames at each of these addresses of a program that runs, with the functions that are inlined there.
pub(super) fn names_of(addresses: BTreeSet<u64>, process: u32, files: &Maps) -> BTreeMap<u64, Vec<Frame>> {
    let nowhere: Arc<str> = "".into();
    let mut found = BTreeMap::new();
    let mut in_files: BTreeMap<Arc<str>, Vec<(u64, u64)>> = BTreeMap::new();
    for address in addresses {
        match files.find(process, address) {
            Some(file) => in_files.entry(file.path.clone()).or_default().push((address, file.place(address))),
            None => _ = found.insert(address, vec![Frame::new(None, &nowhere, address, false)]),
        }
    }
    for (path, places) in in_files {
        let offsets: Vec<u64> = places.iter().map(|(_, place)| *place).collect();
        let mut names = of_file(&path, &offsets).into_iter();
        for (address, place) in places {
            let frame = |name: Option<Arc<str>>| Frame::new(name, &path, place, false);
            let named = names.next().unwrap_or_default();
            let frames: Vec<Frame> = named.iter().map(|name| frame(Some(name.function.as_str().into()))).collect();
            found.insert(address, if frames.is_empty() { vec![frame(None)] } else { frames });
        }
    }
    found
}
