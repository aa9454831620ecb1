//! Names of addresses: those of the kernel, and those of files by their symbols and their debug information.

use blazesym::symbolize::source::{Elf, Source};
use blazesym::symbolize::{CodeInfo, Input, Symbolized, Symbolizer};
use eventring::internal::shm::{link_to, open_file};
use eventring_capture::foreign::copy_in_memory;
use object::elf::{ELF_NOTE_GNU, FileHeader64, NT_GNU_BUILD_ID};
use object::read::elf::{FileHeader as _, ProgramHeader as _};
use object::{Endianness, ReadCache};
use rustix::fs::fstat;
use rustix::process::geteuid;
use std::fs::File;

/// The largest number of bytes of a stranger's file that is copied, and of notes that are looked through.
const COPIED_BYTES_MAX: u64 = 1 << 30;
const NOTES_BYTES_MAX: u64 = 1 << 20;

/// A function at an address, and the place in its source.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Name {
    pub(crate) function: String,
    /// The file of the source; empty if it is not known.
    pub(crate) file: String,
    /// The line in the file; 0 if it is not known.
    pub(crate) line: u32,
}

/// Returns the names of addresses of the kernel that runs. An address has several names if functions are inlined there,
/// the innermost first.
#[cfg(all(
    feature = "record",
    target_os = "linux",
    not(eventring_unsupported),
    any(target_arch = "x86_64", target_arch = "aarch64")
))]
pub(crate) fn of_kernel(addresses: &[u64]) -> Vec<Vec<Name>> {
    if addresses.is_empty() {
        return Vec::new();
    }
    look_up(&Source::Kernel(blazesym::symbolize::source::Kernel::default()), Input::AbsAddr(addresses))
}

/// Returns the names of places in a file, as [`of_kernel`] does.
///
/// The file may be that of a user who wants to harm this one. Such a file is copied first: a file that is cut while it
/// is mapped ends whoever reads it. If it names other files with its debug information, its own symbols do.
pub(crate) fn of_file(file: &File, places: &[u64]) -> Vec<Vec<Name>> {
    let owner = fstat(file).map(|stat| stat.st_uid);
    let is_ours = owner.is_ok_and(|owner| owner == 0 || owner == geteuid().as_raw());
    let copy = if is_ours { None } else { Some(copy_in_memory(file, COPIED_BYTES_MAX)) };
    let Ok(copy) = copy.transpose() else { return Vec::new() };
    let file = copy.as_ref().unwrap_or(file);
    let mut elf = Elf::new(link_to(file));
    elf.debug_syms = is_ours || !names_other_files(file);
    look_up(&Source::Elf(elf), Input::FileOffset(places))
}

/// Returns the build id of a file; none if it has none, or is no file with code.
pub(crate) fn build_id(file: &File) -> Vec<u8> {
    let cache = ReadCache::new(file);
    let found = || {
        let header = FileHeader64::<Endianness>::parse(&cache).ok()?;
        let endian = header.endian().ok()?;
        let headers = header.program_headers(endian, &cache).ok()?.iter();
        headers.filter(|header| header.p_filesz(endian) <= NOTES_BYTES_MAX).find_map(|header| {
            let mut notes = header.notes(endian, &cache).ok()??;
            std::iter::from_fn(|| notes.next().ok()?)
                .find(|note| note.name() == ELF_NOTE_GNU && note.n_type(endian) == NT_GNU_BUILD_ID)
                .map(|note| note.desc().to_vec())
        })
    };
    found().unwrap_or_default()
}

/// Opens a file that a recording names, if it is there and has this build id. It may be any file.
pub(crate) fn with_build_id(path: &str, id: &[u8]) -> Option<File> {
    let file = open_file(path.as_ref()).ok().filter(|_| !id.is_empty())?;
    build_id(&file).starts_with(id).then_some(file)
}

/// Returns true if a file names others that have its debug information, or if that cannot be found out.
fn names_other_files(file: &File) -> bool {
    let cache = ReadCache::new(file);
    let named = || {
        let header = FileHeader64::<Endianness>::parse(&cache).ok()?;
        let endian = header.endian().ok()?;
        let sections = header.sections(endian, &cache).ok()?;
        let links = [&b".gnu_debuglink"[..], b".gnu_debugaltlink", b".debug_sup"];
        Some(
            sections
                .iter()
                .any(|section| sections.section_name(endian, section).is_ok_and(|name| links.contains(&name))),
        )
    };
    named().unwrap_or(true)
}

fn look_up(source: &Source<'_>, input: Input<&[u64]>) -> Vec<Vec<Name>> {
    // What was looked up in one file is not needed for the next one.
    let symbolizer = Symbolizer::builder().enable_auto_reload(false).build();
    let found = symbolizer.symbolize(source, input).unwrap_or_default();
    found.iter().map(names).collect()
}

fn names(found: &Symbolized<'_>) -> Vec<Name> {
    let Symbolized::Sym(symbol) = found else { return Vec::new() };
    let inlined = symbol.inlined.iter().rev().map(|inlined| (&inlined.name, inlined.code_info.as_ref()));
    let all = inlined.chain([(&symbol.name, symbol.code_info.as_deref())]);
    all.map(|(name, code)| Name {
        function: name.to_string(),
        file: code.map(CodeInfo::to_path).map(|path| path.to_string_lossy().into_owned()).unwrap_or_default(),
        line: code.and_then(|code| code.line).unwrap_or(0),
    })
    .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_file_with_the_same_build_id_is_taken() {
        let program = std::env::current_exe().unwrap();
        let id = build_id(&File::open(&program).unwrap());
        assert!(id.len() >= 8, "the linker gives programs build ids");
        let path = program.to_str().unwrap();
        assert!(with_build_id(path, &id).is_some());
        let other: Vec<u8> = id.iter().map(|byte| !byte).collect();
        assert!(with_build_id(path, &other).is_none() && with_build_id(path, &[]).is_none());
        assert!(with_build_id("/dev/zero", &id).is_none() && with_build_id("/no/such/file", &id).is_none());
    }

    #[inline(never)]
    fn function_of_a_stranger() {
        std::hint::black_box(7);
    }

    /// Returns the names at a function of this program in a file, which is a copy of it.
    fn names_in(copy: &std::path::Path) -> Vec<String> {
        let address = function_of_a_stranger as fn() as usize as u64;
        let mapped = eventring_capture::foreign::MappedFile::list(std::process::id()).unwrap();
        let mapped = mapped.iter().find(|mapped| (mapped.begin..mapped.end).contains(&address)).unwrap();
        let place = address - mapped.begin + mapped.offset;
        let names = of_file(&File::open(copy).unwrap(), &[place]);
        names.into_iter().flatten().map(|name| name.function).collect()
    }

    #[test]
    fn a_strangers_file_names_its_functions_and_leads_to_no_pipe() {
        use eventring_stress::{missing, users};
        use std::process::Command;

        function_of_a_stranger();
        if !users::can_be_played() {
            return;
        }
        let directory = tempfile::tempdir().unwrap();
        let path = |name: &str| directory.path().join(name);
        let (copy, debug) = (path("copy"), path("copy.debug"));
        std::fs::copy(std::env::current_exe().unwrap(), &copy).unwrap();
        let is_named =
            |copy: &std::path::Path| names_in(copy).iter().any(|name| name.contains("function_of_a_stranger"));
        assert!(is_named(&copy), "the file is root's");
        // The link is a name, zeros to a multiple of four bytes, and a sum. It may be any path.
        let mut link = format!("{}\0", debug.display()).into_bytes();
        link.resize(link.len().next_multiple_of(4) + 4, 0);
        std::fs::write(path("link"), link).unwrap();
        let section = format!(".gnu_debuglink={}", path("link").display());
        match Command::new("objcopy").args(["--add-section", &section]).arg(&copy).status() {
            Ok(status) if status.success() => {}
            failed => return missing(format_args!("objcopy of binutils: {failed:?}")),
        }
        assert!(Command::new("mkfifo").arg(&debug).status().unwrap().success());
        std::os::unix::fs::chown(&copy, Some(65_534), Some(65_534)).unwrap();
        let (told, hears) = std::sync::mpsc::channel();
        std::thread::spawn(move || told.send(is_named(&copy)));
        assert_eq!(hears.recv_timeout(std::time::Duration::from_secs(60)), Ok(true), "it waits at the pipe");
    }
}
