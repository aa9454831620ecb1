//! Forwarding: events are sent to another host in batches, through a stream of NATS JetStream, and are captures there.
//!
//! [`forward`] sends the batches of one recorder, and [`Receiver`] makes a capture file from a stream. A batch is a
//! capture file of at most 1 MiB. `docs/FORWARD.md` describes batches.
//!
//! All state is in the NATS stream and in the receiver's file:
//!
//! - A forwarder begins where the last batch of its subject ends. With each batch, the forwarder sends the sequence
//!   number of the batch before.
//! - If that earlier batch is no longer the last one of the subject, the broker refuses the new batch. So no batch is
//!   stored twice or left out.
//! - A receiver writes the position of each batch in the stream into its file, and begins after the last position.
//! - Events that were overwritten before they were forwarded become a gap with their exact seqnos.
//!
//! While the broker cannot be reached, the events wait in their rings. The recording program never waits.
//!
//! | file | idea |
//! |---|---|
//! | `connect` | connecting to a broker, and making the stream |
//! | `broker` | a connection to a stream: its last batch, publishing, fetching |
//! | `subject` | the subject of a recorder's batches |
//! | `sender` | sending one batch exactly once |
//! | `program` | the rings of a program, and the spans in which its typed events were recorded |
//! | `forwarder` | sending a recorder's events, as batches, to their stream |
//! | `watched` | reporting the progress to the caller of a forwarder, who may also end it |
//! | `receiver` | writing a stream to a capture file |

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
pub use forwarder::{ForwardOptions, ForwardSummary, forward};
pub use program::{Programs, SpanRings};
pub use receiver::{ReceiveProgress, ReceiveSummary, Receiver, ReceiverOptions, Refusal, Share};
pub use watched::ForwardProgress;
