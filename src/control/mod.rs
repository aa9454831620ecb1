//! Live control: a server in the program, and its clients in other processes.
//!
//! A server hands out read-only descriptors of the program's rings, and lets clients switch on what the program
//! records. `docs/CONTROL.md` describes the messages, who may do what, and what happens at each death.
//!
//! The server knows nothing of recorders. It serves a list of files, and it passes directives to the parts of the
//! program that other modules have registered.
//!
//! | file | idea |
//! |---|---|
//! | `wire/` | the messages, byte by byte |
//! | `socket` | sockets that carry messages and descriptors |
//! | `address` | the places of sockets |
//! | `served` | the files that a server serves |
//! | `switches` | the parts of a program that take directives |
//! | `wishes` | the wishes of all clients, and how long they live |
//! | `server/` | the thread that serves |
//! | `find` | finding the servers of a machine |
//! | `patience` | locks that a forked child can do without |
//! | `process` | a client's connection to a server |
//! | `error` | the error type |

mod address;
mod error;
mod find;
mod patience;
mod process;
mod served;
mod server;
mod socket;
mod switches;
mod wire;
mod wishes;

pub use address::ServerAddress;
pub use error::{ControlError, ControlErrorKind};
pub use find::addresses;
pub use process::{ClientWish, Domain, FileChange, Process, ProcessState, ServedFile, WishTime};
#[doc(hidden)]
pub use server::ServedFileContent;
pub use server::{SERVER_VARIABLE, Server, ServerBuilder};

#[doc(hidden)]
pub use wire::decode_messages;

pub(crate) use find::explicit_address;
pub(crate) use served::{Export, ServedContent, export};
#[cfg(feature = "tracing")]
pub(crate) use switches::changed;
pub(crate) use switches::{Switchable, register};
