//! Global recorders: process-wide statics that hold an installed [`Recorder`](crate::recorder::Recorder), or none.

mod active;
mod already_installed;
#[cfg(feature = "macros")]
mod exec;
mod flow;
mod global_recorder;
mod init;
mod leaked;
mod overrides;

pub(crate) use active::identity;
pub use active::{ActiveRecorder, RecordsTo};
pub use already_installed::AlreadyInstalled;
#[cfg(feature = "macros")]
pub use exec::BlockScope;
pub(crate) use flow::span_ext;
pub use flow::{AmbientExt, ambient_ext, current_span_id, set_current_span_id};
pub use global_recorder::GlobalRecorder;
#[cfg(feature = "tracing")]
pub(crate) use global_recorder::{Installable, NotInstalled};
pub use init::{InitError, InitErrorKind};
pub use overrides::OverrideGuard;

/// The global recorder of execution events. Events that are recorded through it carry the calling thread's ambient flow tags and the id
/// of its current span, see [`ambient_ext`].
pub static EXEC: GlobalRecorder = GlobalRecorder::new("exec");
