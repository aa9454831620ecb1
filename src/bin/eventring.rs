//! The program `eventring`.
//!
//! It is compiled with the binary, not with the library: so the compiler sees to it that it uses the public API only.

#[cfg(all(target_os = "linux", not(eventring_unsupported)))]
#[path = "../cli/mod.rs"]
mod cli;

#[cfg(all(target_os = "linux", not(eventring_unsupported)))]
fn main() -> std::process::ExitCode {
    cli::main()
}

/// Says that this system has no event rings, by the exit code that the program has for this.
#[cfg(not(all(target_os = "linux", not(eventring_unsupported))))]
fn main() -> std::process::ExitCode {
    const UNSUPPORTED: u8 = 15;
    eprintln!("error: event rings need Linux, and this program was built for another system, or without them");
    std::process::ExitCode::from(UNSUPPORTED)
}
