//! The messages between a server and its clients, byte by byte. `docs/CONTROL.md` describes them.
//!
//! Each message is one packet of a SOCK_SEQPACKET socket: a head of 16 bytes and a body, together at most
//! [`MESSAGE_BYTES_MAX`]. Numbers are little-endian. No message from the other side is trusted: a malformed message is
//! an error, never a panic.
//!
//! | file | idea |
//! |---|---|
//! | `fault` | the limits of messages, and their faults |
//! | `bytes` | writing and reading the parts of a body |
//! | `message` | the head, which all messages have |
//! | `request` | the messages that a client sends |
//! | `answer` | the messages that a server sends |

mod answer;
mod bytes;
mod fault;
mod message;
mod request;

pub(crate) use answer::{Answer, OverrideInfo, ServedInfo, SwitchedDomain};
pub(crate) use fault::{MESSAGE_BYTES_MAX, WireFault};
pub(crate) use message::WireMessage;
pub(crate) use request::{ClientRequest, OverrideLife};

#[cfg(test)]
mod tests;
