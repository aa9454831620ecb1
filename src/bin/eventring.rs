//! The program `eventring`.
//!
//! It is compiled with the binary, not with the library: so the compiler sees to it that it uses the public API only.

#[path = "../cli/mod.rs"]
mod cli;

fn main() -> std::process::ExitCode {
    cli::main()
}
