//! Counts of instructions. On this system there are none.

/// A counter of instructions. There is none.
#[derive(Debug)]
pub(crate) enum InstructionCounter {}

impl InstructionCounter {
    pub(crate) fn of_plugin() -> Option<Self> {
        None
    }

    pub(crate) fn of_hardware() -> Option<Self> {
        None
    }

    pub(crate) fn count(&self) -> u64 {
        match *self {}
    }
}
