//! Reading an ELF core file in pieces: the memory of a process, its mapped files, and how it ended.

use crate::exit::{Exit, Failure};
use crate::text::format::one_line;
use eventring::internal::shm;
use eventring::internal::shm::NotAFile;
use object::elf::{ET_CORE, FileHeader64, NT_FILE, NT_PRPSINFO, NT_PRSTATUS, PT_LOAD, PT_NOTE, ProgramHeader64};
use object::read::ReadCache;
use object::read::elf::{FileHeader as _, NoteIterator, ProgramHeader as _};
use object::{Endian as _, Endianness};
use rustix::fs::SeekFrom;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt as _;
use std::path::Path;

/// The largest number of segments. A process has a mapping for each, and the system's limit is 65,530 by default.
const SEGMENTS_MAX: usize = 1 << 20;
/// The bytes of notes that are read. What is asked for comes first, before the registers of thousands of threads.
const NOTES_BYTES_MAX: u64 = 16 << 20;
/// The largest number of mapped files, and of threads, that are kept.
const ENTRIES_MAX: usize = 1 << 20;
const PIECE_BYTES: u64 = 1 << 20;

/// A core file.
pub(super) struct CoreFile {
    pub(super) file: File,
    pub(super) bytes: u64,
    /// The memory that is in the file, by address.
    pub(super) segments: Vec<Segment>,
    pub notes: Notes,
    /// The bytes of memory that lie behind the end of the file, because it was cut.
    pub cut_bytes: u64,
    /// The time by which the file was written, in nanoseconds since the epoch.
    pub written_epoch_nanos: u64,
}

/// A range of memory.
#[derive(Clone, Copy)]
pub(super) struct Segment {
    pub address: u64,
    /// The bytes that are in the file; 0 if all of them were cut off.
    pub bytes: u64,
    offset: u64,
}

/// What the notes of a core file say.
#[derive(Default)]
pub(super) struct Notes {
    pub pid: u32,
    pub program: String,
    pub signal: i32,
    /// The threads; the first is the one that crashed.
    pub threads: Vec<u32>,
    pub files: Vec<MappedFile>,
    pub page_bytes: u64,
}

/// A range of memory that is that of a file.
pub(super) struct MappedFile {
    pub address: u64,
    pub end: u64,
    /// The first page of the file that is mapped here.
    pub page: u64,
    pub path: String,
}

impl CoreFile {
    pub(super) fn open(path: &Path) -> Result<Self, Failure> {
        let shown = one_line(&path.display().to_string());
        let cannot = |error: io::Error| Failure::io(format_args!("cannot read {shown}"), &error);
        let remedy = "name the core file of a program that has recorded; `coredumpctl dump -o core` writes one that systemd keeps";
        let file = shm::open_file(path).map_err(|error| match NotAFile::is_cause(&error) {
            true => Exit::NotARing.failure(format!(
                "{shown} is no file, expected a core file; copy what comes from it into a file first"
            )),
            false => cannot(error).and(remedy),
        })?;
        let metadata = file.metadata().map_err(cannot)?;
        let bytes = metadata.len();
        let written = metadata.modified().ok().and_then(|time| time.duration_since(std::time::UNIX_EPOCH).ok());
        let (mut segments, notes) = read(&file, bytes)
            .map_err(|found| Exit::NotARing.failure(format!("{shown} is no core file that can be read: {found}")))?;
        let mut cut_bytes = 0_u64;
        for segment in &mut segments {
            let there = segment.bytes.min(bytes.saturating_sub(segment.offset));
            cut_bytes = cut_bytes.saturating_add(segment.bytes - there);
            segment.bytes = there;
        }
        segments.sort_by_key(|segment| segment.address);
        let written_epoch_nanos = written.map_or(u64::MAX, |since| since.as_nanos() as u64);
        Ok(Self { file, bytes, segments, notes, cut_bytes, written_epoch_nanos })
    }

    /// Reads the beginning of a segment.
    pub(super) fn read_start<const N: usize>(&self, segment: &Segment) -> Option<[u8; N]> {
        let mut start = [0; N];
        (segment.bytes >= N as u64).then_some(())?;
        self.file.read_exact_at(&mut start, segment.offset).ok()?;
        Some(start)
    }

    /// Copies memory into a file, at the given offset, without what is zero. Takes what it copies from `left`, and ends
    /// with an error when nothing is left. Returns how many bytes of the memory are not in the core file, and how many
    /// are there before the first of them.
    pub(super) fn copy(&self, address: u64, bytes: u64, to: (&File, u64), left: &mut u64) -> io::Result<(u64, u64)> {
        let end = address.saturating_add(bytes);
        let (mut there, mut whole_until, mut buffer) = (0, address, vec![0; PIECE_BYTES as usize]);
        for segment in &self.segments {
            let from = segment.address.max(address);
            let until = segment.address.saturating_add(segment.bytes).min(end);
            if from >= until {
                continue;
            }
            there += until - from;
            if from <= whole_until {
                whole_until = whole_until.max(until);
            }
            let file_end = segment.offset + (until - segment.address);
            let mut offset = segment.offset + (from - segment.address);
            while offset < file_end {
                // A core file may have large holes.
                match rustix::fs::seek(&self.file, SeekFrom::Data(offset)) {
                    Ok(data) => offset = data.max(offset),
                    Err(rustix::io::Errno::NXIO) => break,
                    Err(_) => {}
                }
                let piece = PIECE_BYTES.min(file_end.saturating_sub(offset));
                if piece == 0 {
                    break;
                }
                *left =
                    left.checked_sub(piece).ok_or_else(|| io::Error::other("its rings lie in each other's memory"))?;
                let piece = &mut buffer[..piece as usize];
                self.file.read_exact_at(piece, offset)?;
                if piece.iter().any(|byte| *byte != 0) {
                    to.0.write_all_at(piece, to.1 + (segment.address + (offset - segment.offset) - address))?;
                }
                offset += piece.len() as u64;
            }
        }
        Ok((bytes - there.min(bytes), whole_until - address))
    }
}

/// Reads the table of segments and the notes.
fn read(file: &File, bytes: u64) -> Result<(Vec<Segment>, Notes), String> {
    let cache = ReadCache::new(file);
    let mut start = [0; 5];
    file.read_exact_at(&mut start, 0).map_err(|_| format!("it has {bytes} bytes, expected an ELF header"))?;
    match start {
        [0x7f, b'E', b'L', b'F', 1] => {
            return Err("it is one of a 32-bit program, and eventring needs 64 bits".to_owned());
        }
        [0x7f, b'E', b'L', b'F', _] => {}
        [0x28, 0xb5, 0x2f, 0xfd, _] | [0x1f, 0x8b, ..] | [0x04, 0x22, 0x4d, 0x18, _] | [0xfd, b'7', ..] => {
            return Err("it is compressed; decompress it first, for example with `coredumpctl dump -o core`".to_owned());
        }
        _ => return Err("it is no core file, expected an ELF header".to_owned()),
    }
    let damaged = |error: object::read::Error| format!("its ELF headers are damaged ({error}); copy it again, whole");
    let header = FileHeader64::<Endianness>::parse(&cache).map_err(damaged)?;
    let endian = header.endian().map_err(damaged)?;
    if header.e_type.get(endian) != ET_CORE {
        return Err("it is a program or a library, expected what the system has written at a crash".to_owned());
    }
    if endian.is_big_endian() != cfg!(target_endian = "big") {
        return Err("it is from a machine with another byte order".to_owned());
    }
    let count = header.phnum(endian, &cache).map_err(damaged)?;
    if count > SEGMENTS_MAX {
        return Err(format!("it says that it has {count} segments, expected at most {SEGMENTS_MAX}"));
    }
    let headers = header.program_headers(endian, &cache).map_err(damaged)?;
    let (mut segments, mut notes) = (Vec::new(), Notes::default());
    for header in headers {
        match header.p_type(endian) {
            PT_LOAD => segments.push(Segment {
                address: header.p_vaddr(endian),
                bytes: header.p_filesz(endian),
                offset: header.p_offset(endian),
            }),
            PT_NOTE => notes.read(file, header, endian),
            _ => {}
        }
    }
    segments.retain(|segment| segment.bytes > 0);
    Ok((segments, notes))
}

impl Notes {
    /// Reads the notes of a segment, as far as they can be read.
    fn read(&mut self, file: &File, header: &ProgramHeader64<Endianness>, endian: Endianness) {
        let mut data = vec![0; header.p_filesz(endian).min(NOTES_BYTES_MAX) as usize];
        let read = file.read_at(&mut data, header.p_offset(endian)).unwrap_or(0);
        let notes = NoteIterator::<FileHeader64<Endianness>>::new(endian, header.p_align(endian), &data[..read]);
        let Ok(mut notes) = notes else { return };
        while let Ok(Some(note)) = notes.next() {
            let data = note.desc();
            match (note.name(), note.n_type(endian)) {
                (b"CORE", NT_PRSTATUS) => {
                    let (signal, thread) = (number(data, 12, 2) as i32, number(data, 32, 4) as u32);
                    if self.threads.is_empty() {
                        self.signal = signal;
                    }
                    if self.threads.len() < ENTRIES_MAX {
                        self.threads.push(thread);
                    }
                }
                (b"CORE", NT_PRPSINFO) => {
                    self.pid = number(data, 24, 4) as u32;
                    let name = data.get(40..56).unwrap_or_default();
                    let name = name.split(|byte| *byte == 0).next().unwrap_or_default();
                    self.program = one_line(&String::from_utf8_lossy(name));
                }
                (b"CORE", NT_FILE) => (self.files, self.page_bytes) = (files(data), number(data, 8, 8)),
                _ => {}
            }
        }
    }
}

/// Returns the number of these bytes, or 0 if they are not there. The notes are structures of the kernel, whose fields
/// have the same places on all 64-bit machines.
fn number(data: &[u8], at: usize, bytes: usize) -> u64 {
    let mut number = [0; 8];
    if let Some(found) = data.get(at..at + bytes) {
        number[..bytes].copy_from_slice(found);
    }
    u64::from_ne_bytes(number)
}

/// Reads the table of mapped files: its length, the size of a page, three numbers for each file, and then the paths.
fn files(data: &[u8]) -> Vec<MappedFile> {
    let count = (number(data, 0, 8) as usize).min(ENTRIES_MAX).min(data.len() / 24);
    let paths = data.get(16 + 24 * count..).unwrap_or_default().split(|byte| *byte == 0);
    let file = |(index, path): (usize, &[u8])| {
        let [address, end, page] = [0, 8, 16].map(|at| number(data, 16 + 24 * index + at, 8));
        MappedFile { address, end, page, path: one_line(&String::from_utf8_lossy(path)) }
    };
    paths.take(count).enumerate().map(file).collect()
}
