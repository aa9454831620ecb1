//! The process-wide recorders: thin slots over first-class [`Recorder`](crate::recorder::Recorder)s.

#[cfg(feature = "macros")]
mod exec;
mod flow;
mod init;
mod leaked;
mod overrides;
mod slot;

#[cfg(feature = "macros")]
pub use exec::BlockScope;
pub(crate) use flow::span_ext;
pub use flow::{AmbientExt, ambient_ext, current_span_id, set_current_span_id};
pub use init::{InitError, InitErrorKind};
#[cfg(feature = "tracing")]
pub(crate) use leaked::Leaked;
pub use overrides::OverrideGuard;
pub(crate) use slot::identity;
pub use slot::{ActiveRecorder, GlobalRecorder, RecordsTo};

/// The slot of the exec recorder: the program's own business events. Events recorded through it carry the calling thread's
/// ambient flow tags and the id of its current span, see [`ambient_ext`].
pub static EXEC: GlobalRecorder = GlobalRecorder::new("exec");
