//! Models of the protocol. The code of the protocol runs unchanged on small rings, in every interleaving (loom) or in
//! many random interleavings (shuttle).
//!
//! Every word of an event, in the descriptor and in the payload, is a function of the event's seqno. So a reader
//! notices if it gets words of two different events. `.ci/models` runs all models. It also checks, for each of the
//! protocol's faults in [`super::mutation`], that a model fails while this fault is switched on. `docs/ORDERING.md`
//! lists what each model shows.

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
