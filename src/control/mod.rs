//! Live control: a server in the program, and its clients in other processes.
//!
//! A server hands out read-only descriptors of the program's rings, and lets clients switch on what the program records
//! (`docs/CONTROL.md`).
//!
//! The server does not depend on recorders. It hands out the descriptors of a list of files. Other modules register
//! parts of the program as *switches*. The server passes clients' directives (what to record) to the switches.
//!
//! | file | idea |
//! |---|---|
//! | `wire/` | the messages, byte by byte |
//! | `socket` | sockets that carry messages and descriptors |
//! | `address` | the addresses of sockets |
//! | `directives` | the text of filter overrides |
//! | `served`, `export` | the files that a server serves, and adding a ring to them |
//! | `switches` | the parts of a program that take directives |
//! | `filter_overrides` | the filter overrides of all clients, and their lifetimes |
//! | `shares` | the shares of users in a server's resources |
//! | `server/` | the thread that serves |
//! | `find` | finding the servers of a machine |
//! | `process` | the client's interface to a process with a server |
//! | `line` | a client's end of a connection |
//! | `served_file` | the client's interface to a ring of a server |
//! | `state` | what a process records at present, as its server reports it |
//! | `error` | the error type |
//! | `fuzzed` | the functions that the fuzzer calls with messages |

mod address;
pub(crate) mod directives;
mod error;
mod export;
mod filter_overrides;
pub(crate) mod find;
pub(crate) mod fuzzed;
mod line;
mod process;
mod served;
mod served_file;
pub(crate) mod server;
mod shares;
mod socket;
mod state;
mod switches;
pub(crate) mod wire;

pub use address::ServerAddress;
pub use error::{ControlError, ControlErrorKind};
pub use process::Process;
pub use served_file::{FileChange, ServedFile};
pub use server::{SERVER_VARIABLE, Server, ServerBuilder, environment_error};
pub use state::{ClientOverride, Domain, OverrideTime, ProcessState};

pub(crate) use directives::DOMAIN;
pub(crate) use export::export;
pub(crate) use served::Export;
#[cfg(feature = "tracing")]
pub(crate) use switches::changed;
pub(crate) use switches::{Switchable, register};
pub(crate) use wire::{ServedInfo, SwitchedDomain};
