//! Stacks and their ids. A stack is recorded once, with its id.
//!
//! | file | idea |
//! |---|---|
//! | `maps` | the files that are mapped into a running process |
//! | `code` | the open files with the code of processes |
//! | `unwind` | return addresses from a copy of a stack |
//! | `symbols` | names of addresses |
//! | `now` | the stacks of threads at this moment |

pub(crate) mod code;
pub(crate) mod maps;
pub(crate) mod now;
pub(crate) mod symbols;
pub(crate) mod unwind;

use super::rings::Ring;
use crate::record::kernel::body::RawStack;
use crate::schema::{self, Stacks as Event};
use code::CodeFile;
use maps::Maps;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;
use unwind::{FRAMES_MAX, Unwinders};

/// The largest number of stacks that are remembered. More are recorded again, under other numbers.
const STACKS_MAX: usize = 1 << 16;
/// The largest number of addresses whose names are looked up.
const ADDRESSES_MAX: usize = 1 << 18;

/// The place of an address.
pub(super) enum Place {
    Kernel,
    /// A place in a file. `None` stands for a file that could not be opened.
    File(Option<Arc<CodeFile>>, u64),
}

#[derive(Default)]
pub(super) struct Stacks {
    /// The number of each stack, and when it was recorded last.
    known: HashMap<Box<[u64]>, (u64, u64)>,
    last_id: u64,
    frames: Vec<u64>,
    places: HashMap<u64, Place>,
    /// The time in nanoseconds after which a stack is recorded again.
    repeats_nanos: Option<u64>,
    pub(super) maps: Maps,
    pub(super) unwinders: Unwinders,
}

impl Stacks {
    /// Makes an empty list, of stacks that are recorded again after a time.
    pub(super) fn new(repeats: Option<Duration>) -> Self {
        Self { repeats_nanos: repeats.map(|time| time.as_nanos() as u64), ..Self::default() }
    }

    /// Returns the number of a stack, which is recorded before if it is new. 0 for a stack without frames.
    pub(super) fn id(&mut self, ring: &Ring, epoch_nanos: u64, process: u32, stack: &RawStack) -> u64 {
        let mut frames = std::mem::take(&mut self.frames);
        frames.clear();
        let kernel = stack.kernel.iter().take(FRAMES_MAX).enumerate();
        // A caller's address is that after the call.
        frames.extend(kernel.map(|(index, address)| if index == 0 { *address } else { address.saturating_sub(1) }));
        let kernel_frames = frames.len();
        self.unwinders.unwind(process, stack, &self.maps, &mut frames);
        let id = match self.known.get(&*frames) {
            _ if frames.is_empty() => 0,
            Some((id, told))
                if self.repeats_nanos.is_none_or(|repeats| epoch_nanos.saturating_sub(*told) < repeats) =>
            {
                *id
            }
            known => {
                let id = known.map_or(self.last_id + 1, |(id, _)| *id);
                self.add(ring, (id, epoch_nanos), process, &frames, kernel_frames)
            }
        };
        self.frames = frames;
        id
    }

    fn add(
        &mut self,
        ring: &Ring,
        (stack_id, epoch_nanos): (u64, u64),
        process: u32,
        frames: &[u64],
        kernel_frames: usize,
    ) -> u64 {
        self.last_id = self.last_id.max(stack_id);
        let stack = schema::Stack { stack_id, kernel_frames: kernel_frames as u32, frames: frames.len() as u32 };
        let bytes: Vec<u8> = frames.iter().flat_map(|address| address.to_le_bytes()).collect();
        ring.record(Event::Stack as u16, epoch_nanos, &stack, &[&bytes]);
        if self.known.len() >= STACKS_MAX {
            self.known.clear();
        }
        self.known.insert(frames.into(), (stack_id, epoch_nanos));
        for (index, address) in frames.iter().enumerate() {
            if self.places.len() >= ADDRESSES_MAX || self.places.contains_key(address) {
                continue;
            }
            let place = match index < kernel_frames {
                true => Some(Place::Kernel),
                false => {
                    let file = self.maps.find(process, *address);
                    file.map(|file| Place::File(self.unwinders.opened(process, file), file.place(*address)))
                }
            };
            if let Some(place) = place {
                self.places.insert(*address, place);
            }
        }
        stack_id
    }

    /// Returns the places of all addresses.
    pub(super) fn places(&self) -> &HashMap<u64, Place> {
        &self.places
    }
}
