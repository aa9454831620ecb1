//! Translation of blocks: which block and which instruction adds how much.

use crate::control;
use crate::options::Mode;
use crate::qemu::{Block, BlockView, PluginId};
use crate::slots;
use std::ffi::{c_uint, c_void};

/// The size of a page of the guest.
const PAGE: u64 = 4096;
/// The most bytes of an x86 instruction.
const LONGEST: u64 = 15;

/// Returns whether an instruction at the address could cross the end of its page.
///
/// QEMU 7.2 shows an instruction to the plugin before it decodes the instruction. If the instruction turns out to cross
/// the page, QEMU removes the instruction from the block again and starts the next block with it. So the number of
/// instructions that the plugin sees is one too high.
fn may_be_taken_back(address: u64) -> bool {
    // With this fault, the test of instructions that cross a page must fail.
    cfg!(not(eventring_mutants)) && address % PAGE > PAGE - LONGEST
}

/// Tells QEMU what each execution of the block adds.
pub extern "C" fn translated(_: PluginId, block: *mut Block) {
    // SAFETY: QEMU passes the block that it translates now, and the view stays in this call.
    let block = unsafe { BlockView::new(block) };
    if let Some(first) = block.get(0) {
        control::learn_guest_base(first);
    }
    match crate::mode() {
        Mode::Block => add_by_block(block),
        Mode::Instruction => {
            (0..block.len()).filter_map(|index| block.get(index)).for_each(|each| each.on_execution(executed, 1));
        }
    }
}

/// Lets the block add all its instructions. An instruction that may be taken back adds itself when it is executed.
fn add_by_block(block: BlockView) {
    let mut number = block.len();
    let last = number.checked_sub(1).and_then(|index| block.get(index));
    if let Some(last) = last.filter(|last| may_be_taken_back(last.address())) {
        last.on_execution(executed, 1);
        number -= 1;
    }
    if number > 0 {
        block.on_execution(executed, number);
    }
}

/// Adds the number to the count of the calling thread.
extern "C" fn executed(_: c_uint, number: *mut c_void) {
    slots::add(number.addr() as u64);
}
