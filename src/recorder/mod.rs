//! Recording: what a program embeds.

mod build;
mod config;
mod core;
mod empty;
mod error;
mod events;
mod header;
mod in_place;
mod lane;
mod old_shards;
mod payload;
#[cfg(feature = "tracing")]
mod stamped;

pub use crate::shm::PlaceWarning;
pub use build::{KEEP_VARIABLE, RecorderBuilder};
pub use config::ContentDescription;
pub use core::{Recorder, RecorderStats};
pub use error::{RecorderError, RecorderErrorKind};
pub(crate) use events::EventsIdentity;
#[cfg(feature = "tracing")]
pub(crate) use header::Shard;
pub use in_place::Reservation;
