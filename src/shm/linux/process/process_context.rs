//! The mapping `OTEL_CTX`, in which a process publishes its resource for profilers of OpenTelemetry.

use super::super::system::calls::boottime_nanos;
use super::super::system::nameless::nameless_memory;
use rustix::mm::{Advice, MapFlags, ProtFlags, madvise, mmap};
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt as _;
use std::ptr;

/// The name of the mapping, which is also the signature at its beginning.
const NAME: &std::ffi::CStr = c"OTEL_CTX";
/// The version of the header.
const VERSION: u32 = 2;
/// The bytes of the header; the payload follows.
const HEADER_BYTES: usize = 32;

/// Makes the mapping with this payload. It stays until the process ends, and a forked child does not get it.
pub(crate) fn publish_process_context(payload: &[u8]) -> io::Result<()> {
    let file = nameless_memory("OTEL_CTX")?;
    let bytes = (HEADER_BYTES + payload.len()).next_multiple_of(rustix::param::page_size());
    file.set_len(bytes as u64)?;
    // SAFETY: a fresh mapping at an address of the kernel's choice overlaps nothing.
    let address = unsafe { mmap(ptr::null_mut(), bytes, ProtFlags::READ, MapFlags::SHARED, &file, 0) }?;
    // SAFETY: exactly the pages just mapped, which this process never touches.
    unsafe { madvise(address, bytes, Advice::LinuxDontFork) }?;
    write(&file, address as u64, payload)?;
    // Many kernels cannot name mappings. The name of the file is enough for readers, but some wait for this call.
    // SAFETY: the call names exactly the pages just mapped, and the name ends with a zero byte.
    unsafe { libc::prctl(libc::PR_SET_VMA, libc::PR_SET_VMA_ANON_NAME, address, bytes, NAME.as_ptr()) };
    Ok(())
}

/// Writes the content, through the file: the signature, which makes it valid, comes last.
fn write(file: &File, address: u64, payload: &[u8]) -> io::Result<()> {
    let size = u32::try_from(payload.len()).map_err(|_| io::ErrorKind::FileTooLarge)?;
    let mut header = [0; HEADER_BYTES];
    header[8..12].copy_from_slice(&VERSION.to_ne_bytes());
    header[12..16].copy_from_slice(&size.to_ne_bytes());
    header[16..24].copy_from_slice(&boottime_nanos().max(1).to_ne_bytes());
    header[24..].copy_from_slice(&(address + HEADER_BYTES as u64).to_ne_bytes());
    file.write_all_at(payload, HEADER_BYTES as u64)?;
    file.write_all_at(&header, 0)?;
    file.write_all_at(NAME.to_bytes(), 0)
}
