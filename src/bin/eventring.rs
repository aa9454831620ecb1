//! The program `eventring`.
//!
//! The program's modules are compiled with this binary and not with the library, so the compiler makes sure that the
//! program uses only the public API.

#[cfg(all(target_os = "linux", not(eventring_unsupported)))]
#[path = "../cli/mod.rs"]
mod cli;

#[cfg(all(target_os = "linux", not(eventring_unsupported)))]
fn main() -> std::process::ExitCode {
    cli::main()
}

/// Ends with the exit code for "not supported", because this system has no event rings.
#[cfg(not(all(target_os = "linux", not(eventring_unsupported))))]
fn main() -> std::process::ExitCode {
    const UNSUPPORTED: u8 = 15;
    eprintln!("error: event rings need Linux, and this program was built for another system, or without them");
    std::process::ExitCode::from(UNSUPPORTED)
}
