//! Models of the protocol. The protocol's code runs unchanged on small rings, in every interleaving (loom) or in many
//! random interleavings (shuttle).
//!
//! Every word of an event is a function of the event's seqno. So a reader notices words of two different events.
//!
//! `.ci/models` runs all models. It also checks that each of the protocol's faults in [`super::mutation`] makes a model
//! fail. `docs/ORDERING.md` lists what each model shows.

mod event;
pub(crate) mod explore;

#[cfg(loom)]
mod abandoned;
#[cfg(loom)]
mod chunks;
#[cfg(loom)]
mod descriptor;
#[cfg(loom)]
mod handlers;
#[cfg(loom)]
mod holes;
#[cfg(shuttle)]
mod random;
#[cfg(loom)]
mod start_table;
#[cfg(loom)]
mod stopped;
#[cfg(loom)]
mod window;
