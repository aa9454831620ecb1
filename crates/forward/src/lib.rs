//! Forwarding: events leave their host in batches, through a stream of NATS JetStream, and become captures again.
//!
//! A batch is a whole capture file of at most 1 MiB; `docs/FORWARD.md` has its format, the subjects and the headers.
//! [`forward`] sends the batches of one recorder, and [`Receiver`] makes a capture file from a stream. Nothing is
//! remembered outside of the stream and of the receiver's file:
//!
//! - A forwarder begins where the last batch of its subject ends. It says with each batch which one it believes to be
//!   the last, and the broker refuses the batch if it is not. So a batch is never there twice, and none is left out.
//! - A receiver writes the place of each batch into its file, and begins after the last one.
//! - Events that were overwritten while nobody forwarded them are a gap with their exact seqnos, as in any capture.
//!
//! While the broker cannot be reached, the events wait in their rings. The recording program never waits.
//!
//! | file | idea |
//! |---|---|
//! | `connect` | connecting to a broker, and making the stream |
//! | `broker` | a connection to a stream: its last batch, publishing, fetching |
//! | `subject` | the subject of a recorder's batches |
//! | `sender` | sending one batch exactly once |
//! | `program` | the rings of a program with the spans in which its typed events were recorded |
//! | `forwarder` | a recorder's events, as batches, to their stream |
//! | `watched` | the caller of a forwarder, who learns its progress and may end it |
//! | `receiver` | a stream, as a capture file |

#![forbid(unsafe_code)]
#![cfg_attr(not(test), deny(clippy::disallowed_methods, clippy::exit, clippy::print_stderr, clippy::print_stdout))]

mod broker;
mod connect;
mod forwarder;
mod program;
mod receiver;
mod sender;
mod subject;
mod watched;

pub use broker::EventStream;
pub use connect::StreamOptions;
#[doc(hidden)]
pub use eventring_capture::received::receive_message;
#[doc(hidden)]
pub use eventring_capture::{BatchFilter, EventSelection, host_name};
pub use forwarder::{ForwardOptions, ForwardProgress, ForwardSummary, forward};
pub use program::{Programs, SpanRings};
pub use receiver::{ReceiveProgress, ReceiveSummary, Receiver, ReceiverOptions, Refusal, Share};
