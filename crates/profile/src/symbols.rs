//! Names of addresses: those of the kernel, and those of files by their symbols and their debug information.

use blazesym::helper::read_elf_build_id;
use blazesym::symbolize::source::{Elf, Source};
use blazesym::symbolize::{CodeInfo, Input, Symbolized, Symbolizer};

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
pub(crate) fn of_file(path: &str, places: &[u64]) -> Vec<Vec<Name>> {
    look_up(&Source::Elf(Elf::new(path)), Input::FileOffset(places))
}

/// Returns true if a file is there and has this build id. A recording names the file, so it may be any.
pub(crate) fn has_build_id(path: &str, build_id: &[u8]) -> bool {
    let is_file = std::fs::metadata(path).is_ok_and(|file| file.is_file());
    let found = || read_elf_build_id(path).ok().flatten();
    is_file && !build_id.is_empty() && found().is_some_and(|found| found.starts_with(build_id))
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
        let id = read_elf_build_id(&program).unwrap().expect("the linker gives programs build ids").to_vec();
        let path = program.to_str().unwrap();
        assert!(has_build_id(path, &id));
        let other: Vec<u8> = id.iter().map(|byte| !byte).collect();
        assert!(!has_build_id(path, &other) && !has_build_id(path, &[]));
        assert!(!has_build_id("/dev/zero", &id) && !has_build_id("/no/such/file", &id));
    }
}
