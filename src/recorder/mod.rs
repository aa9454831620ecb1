//! Recording: the part that a program embeds.

mod build;
mod config;
mod core;
mod domain_control;
mod domain_switch;
mod domains;
mod error;
mod events;
mod handle;
mod header;
mod old_shards;
mod payload;
mod record;
mod reservation;
#[cfg_attr(not(all(feature = "server", target_os = "linux", not(eventring_unsupported))), path = "not_served.rs")]
mod served;
mod start_table;
#[cfg(all(feature = "server", target_os = "linux", not(eventring_unsupported)))]
mod steered_domains;
#[allow(unsafe_code, reason = "one of the modules that ARCHITECTURE names for it")]
mod thread_cursors;

pub use crate::clock::{Calibration, Clock, ClockKind, TickCounter};
pub use crate::layout::Geometry;
pub use crate::shm::HugePageWarning;
pub(crate) use build::too_little_memory;
pub use build::{CORE_VARIABLE, KEEP_VARIABLE, RecorderBuilder};
pub use config::ContentDescription;
pub use domain_switch::DomainState;
pub use domains::{DOMAINS_VARIABLE, UnknownDomain};
pub use error::{RecorderError, RecorderErrorKind};
pub(crate) use events::EventsIdentity;
pub use handle::{Recorder, RecorderStats};
pub(crate) use header::Shard;
#[cfg(feature = "context")]
pub(crate) use header::recorded_program_name;
pub(crate) use record::Recorded;
pub use reservation::Reservation;
