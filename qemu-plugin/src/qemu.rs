//! The part of QEMU's plugin interface that the plugin uses.
//!
//! The functions stay undefined in the library: the dynamic linker finds them in QEMU's executable. Versions 1 to 6 of
//! the interface do not differ in these functions. Version 7 changes the callbacks.

use std::ffi::{c_char, c_int, c_uint, c_void};
use std::marker::{PhantomData, PhantomPinned};
use std::ptr;
use std::sync::atomic::{AtomicI32, Ordering};

/// The number by which QEMU tells its plugins apart.
pub type PluginId = u64;

/// The beginning of QEMU's description of itself. A part about system emulation follows that user mode lacks.
#[repr(C)]
pub struct Info {
    pub target_name: *const c_char,
    pub version_oldest: c_int,
    pub version_newest: c_int,
    pub system_emulation: bool,
}

/// A block of instructions that QEMU translates.
#[repr(C)]
pub struct Block {
    opaque: [u8; 0],
    marker: PhantomData<(*mut u8, PhantomPinned)>,
}

/// An instruction of a block.
#[repr(C)]
pub struct Instruction {
    opaque: [u8; 0],
    marker: PhantomData<(*mut u8, PhantomPinned)>,
}

/// A function that QEMU calls when it translates a block.
pub type Translated = extern "C" fn(PluginId, *mut Block);
/// A function that QEMU calls when the guest executes a block or an instruction.
pub type Executed = extern "C" fn(c_uint, *mut c_void);
/// A function that QEMU calls before a system call, with the number and the arguments of the call.
pub type SystemCall = extern "C" fn(PluginId, c_uint, i64, u64, u64, u64, u64, u64, u64, u64, u64);
/// A function that QEMU calls when the guest's process exits.
pub type Exiting = extern "C" fn(PluginId, *mut c_void);

/// The newest version of the interface whose callbacks have these forms.
pub const NEWEST_KNOWN: i32 = 6;

/// The flag of a callback that reads no registers.
const NO_REGISTERS: c_int = 0;

unsafe extern "C" {
    fn qemu_plugin_register_vcpu_tb_trans_cb(id: PluginId, call: Translated);
    fn qemu_plugin_register_vcpu_syscall_cb(id: PluginId, call: SystemCall);
    fn qemu_plugin_register_atexit_cb(id: PluginId, call: Exiting, data: *mut c_void);
    fn qemu_plugin_register_vcpu_tb_exec_cb(block: *mut Block, call: Executed, flags: c_int, data: *mut c_void);
    fn qemu_plugin_register_vcpu_insn_exec_cb(
        instruction: *mut Instruction,
        call: Executed,
        flags: c_int,
        data: *mut c_void,
    );
    fn qemu_plugin_tb_n_insns(block: *const Block) -> usize;
    fn qemu_plugin_tb_get_insn(block: *const Block, index: usize) -> *mut Instruction;
    fn qemu_plugin_insn_vaddr(instruction: *const Instruction) -> u64;
    fn qemu_plugin_insn_haddr(instruction: *const Instruction) -> *mut c_void;
}

/// The version of the interface that the plugin asks for. QEMU reads the number after the library's initialisers ran.
#[unsafe(no_mangle)]
#[allow(non_upper_case_globals, reason = "QEMU looks for this name")]
pub static qemu_plugin_version: AtomicI32 = AtomicI32::new(1);

/// The initialiser that chooses the version. QEMU until 8.2 accepts only 1, QEMU since 9.0 refuses 1.
#[used]
#[unsafe(link_section = ".init_array")]
static CHOOSE_VERSION: extern "C" fn() = choose_version;

extern "C" fn choose_version() {
    // The function exists since version 2.
    // SAFETY: the name is a string with a terminating zero.
    let found = unsafe { libc::dlsym(libc::RTLD_DEFAULT, c"qemu_plugin_scoreboard_new".as_ptr()) };
    if !found.is_null() {
        qemu_plugin_version.store(2, Ordering::Relaxed);
    }
}

/// Registers the function for each translated block.
pub fn on_translation(id: PluginId, call: Translated) {
    // SAFETY: `id` is the plugin's, and the function lives as long as the library, which is never unloaded.
    unsafe { qemu_plugin_register_vcpu_tb_trans_cb(id, call) }
}

/// Registers the function for each system call.
pub fn on_system_call(id: PluginId, call: SystemCall) {
    // SAFETY: see `on_translation`.
    unsafe { qemu_plugin_register_vcpu_syscall_cb(id, call) }
}

/// Registers the function for the end of the process.
pub fn on_exit(id: PluginId, call: Exiting) {
    // SAFETY: see `on_translation`. The function ignores its data.
    unsafe { qemu_plugin_register_atexit_cb(id, call, ptr::null_mut()) }
}

/// A view of the block that QEMU translates now. The view is valid during one call of a [`Translated`] function.
#[derive(Clone, Copy)]
pub struct BlockView(*mut Block);

/// A view of an instruction of a [`BlockView`].
#[derive(Clone, Copy)]
pub struct InstructionView(*mut Instruction);

impl BlockView {
    /// Makes the view of a block.
    ///
    /// # Safety
    ///
    /// The pointer must be the argument of a running call of a [`Translated`] function. The view may not outlive this
    /// call.
    pub unsafe fn new(block: *mut Block) -> BlockView {
        BlockView(block)
    }

    /// Returns the number of instructions.
    pub fn len(self) -> usize {
        // SAFETY: `new` demands a valid block.
        unsafe { qemu_plugin_tb_n_insns(self.0) }
    }

    /// Returns an instruction, if the block has so many.
    pub fn get(self, index: usize) -> Option<InstructionView> {
        if index >= self.len() {
            return None;
        }
        // SAFETY: the block is valid, and the index lies within it.
        let instruction = unsafe { qemu_plugin_tb_get_insn(self.0, index) };
        (!instruction.is_null()).then_some(InstructionView(instruction))
    }

    /// Lets each execution of the block call the function with the number.
    pub fn on_execution(self, call: Executed, number: usize) {
        // SAFETY: the block is valid. The number travels in the pointer, which nobody follows.
        unsafe { qemu_plugin_register_vcpu_tb_exec_cb(self.0, call, NO_REGISTERS, ptr::without_provenance_mut(number)) }
    }
}

impl InstructionView {
    /// Returns the address in the guest.
    pub fn address(self) -> u64 {
        // SAFETY: the view belongs to a valid block.
        unsafe { qemu_plugin_insn_vaddr(self.0) }
    }

    /// Returns the address in QEMU's process, or 0 if QEMU does not know it.
    pub fn host_address(self) -> u64 {
        // SAFETY: the view belongs to a valid block.
        unsafe { qemu_plugin_insn_haddr(self.0) }.addr() as u64
    }

    /// Lets each execution of the instruction call the function with the number.
    pub fn on_execution(self, call: Executed, number: usize) {
        let data = ptr::without_provenance_mut(number);
        // SAFETY: the view belongs to a valid block. The number travels in the pointer, which nobody follows.
        unsafe { qemu_plugin_register_vcpu_insn_exec_cb(self.0, call, NO_REGISTERS, data) }
    }
}
