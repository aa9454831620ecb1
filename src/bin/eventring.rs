//! The program `eventring`.
//!
//! The command line (`src/cli`) is compiled as a part of this binary and not of the library. So it can use only the
//! library's public API: the compiler refuses everything else.

#[cfg(all(target_os = "linux", not(eventring_unsupported)))]
#[path = "../cli/mod.rs"]
mod cli;

#[cfg(all(target_os = "linux", not(eventring_unsupported)))]
fn main() -> std::process::ExitCode {
    cli::main()
}

/// Prints an error and ends with the exit code for "not supported", because this build has no event rings.
#[cfg(not(all(target_os = "linux", not(eventring_unsupported))))]
fn main() -> std::process::ExitCode {
    const UNSUPPORTED: u8 = 15;
    eprintln!("error: event rings need Linux, and this program was built for another system, or without them");
    std::process::ExitCode::from(UNSUPPORTED)
}
