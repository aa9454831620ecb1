//! The library also compiles on other systems than Linux. So names that exist only on Linux may stand only in code
//! that those systems do not compile.

mod tidy;

use tidy::{has_word, sources};

/// Folders and files that other systems do not compile.
const LINUX_ONLY: [&str; 5] = ["shm/linux/", "control/", "capture/output_entry.rs", "capture/read_files.rs", "cli/"];
/// Files that other systems compile, too. In these files a `cfg` stands before each name that exists only on Linux.
const WITH_CFG: [&str; 3] = ["shm/fd.rs", "arch/ticks.rs", "clock/tick_counter.rs"];

fn names_the_system(code: &str) -> bool {
    ["rustix", "libc", "signal_hook"].iter().any(|name| has_word(code, name)) || code.contains("std::os::")
}

#[test]
fn only_files_for_linux_name_what_only_linux_has() {
    let sources = sources();
    let is_allowed = |path: &str| LINUX_ONLY.iter().chain(&WITH_CFG).any(|allowed| path.starts_with(allowed));
    let wrong: Vec<&str> = sources
        .iter()
        .filter(|source| names_the_system(&source.code) && !is_allowed(&source.path))
        .map(|source| source.path.as_str())
        .collect();
    assert!(
        wrong.is_empty(),
        "other systems compile these files, too; ask `crate::shm` instead:\n{}",
        wrong.join("\n")
    );
    for path in WITH_CFG {
        let source = sources.iter().find(|source| source.path == path).expect(path);
        let conditions = source.code.matches("#[cfg(").count();
        assert!(names_the_system(&source.code) && conditions > 0, "src/{path} needs no exception");
    }
}

#[test]
fn this_test_sees_what_it_looks_for() {
    assert!(names_the_system("let now = rustix::time::now();") && names_the_system("use std::os::fd::AsFd;"));
    assert!(!names_the_system("let libcs = 1;"));
}
